/** A command whose outcome is a promise. */
import type { AnyScriptCall, PlainCommand, Reader } from "./call.js";
import { Command, type CommandHost } from "./command.js";

/** What is sent, and what becomes of the answer. */
export interface CommandSpec<T> {
  readonly call: AnyScriptCall | PlainCommand;
  readonly read: Reader<T>;
  /** Of a command that goes on until it is answered: makes the script's call anew for each further sending. */
  readonly again?: () => AnyScriptCall;
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
  /** See {@link AnyScriptCall.late}. */
  readonly #late: ((reply: unknown) => void) | undefined;
  #isFirst = true;
  /** The keys of what is sent. */
  readonly #call: AnyScriptCall | PlainCommand;

  constructor(
    host: CommandHost,
    spec: CommandSpec<T>,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    super(host);
    this.lockName = spec.call.lockName;
    this.#call = spec.call;
    this.#late = "late" in spec.call ? spec.call.late : undefined;
    this.#work = { spec, resolve, reject };
  }

  protected override get blocks(): boolean {
    return "blocks" in this.#call && this.#call.blocks === true;
  }

  protected override get isVital(): boolean {
    return this.#work?.spec.again !== undefined;
  }

  protected override request(): AnyScriptCall | PlainCommand {
    const { again } = this.#work?.spec ?? {};
    const call = again && !this.#isFirst ? again() : this.#call;
    this.#isFirst = false;
    return call;
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

  protected override late(reply: unknown): void {
    this.#late?.(reply);
  }
}
