/** A command whose outcome is a promise. */
import type { ScriptCall } from "../scripts/script.js";
import { Command, type PlainCommand } from "./command.js";
import type { CommandRunner } from "./command-runner.js";

export interface CommandSpec<T> {
  readonly lockName: string;
  /** Makes what is sent, anew for each sending. */
  readonly make: () => ScriptCall | PlainCommand;
  /** How the reply is read. */
  readonly read: (reply: unknown) => T;
  /** It goes on until it is answered. */
  readonly isVital: boolean;
}

/** What a command needs until it ends. */
interface Work<T> {
  readonly spec: CommandSpec<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export class PromisedCommand<T> extends Command {
  override readonly lockName: string;
  /** Undefined once the command has ended, since ioredis may keep this object for long after that. */
  #work: Work<T> | undefined;

  constructor(
    runner: CommandRunner,
    spec: CommandSpec<T>,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    super(runner);
    this.lockName = spec.lockName;
    this.#work = { spec, resolve, reject };
  }

  protected override get isVital(): boolean {
    return this.#work?.spec.isVital === true;
  }

  protected override request(): ScriptCall | PlainCommand {
    return (this.#work as Work<T>).spec.make();
  }

  protected override goesOn(): boolean {
    return this.isVital;
  }

  protected override answered(reply: unknown): void {
    const work = this.#work as Work<T>;
    const value = work.spec.read(reply);
    this.#work = undefined;
    work.resolve(value);
  }

  protected override failed(error: unknown): void {
    const work = this.#work as Work<T>;
    this.#work = undefined;
    work.reject(error);
  }
}
