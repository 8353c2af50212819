/**
 * What clients sent through a proxy, for tests that count it.
 */
import { anyCommand, type FaultKind, type Matcher } from "./proxy-faults.js";

export interface RecordedCommand {
  /** Number of the connection, from 1 in the order they were made. */
  readonly connection: number;
  /** The command's words, the name in capitals. */
  readonly command: readonly string[];
  /** `swallowed`: lost in a black hole. `cut`: executed, the reply is lost. `drop`, `hold`: not executed (yet). */
  readonly fate: "passed" | "swallowed" | FaultKind;
}

export class CommandRecord {
  readonly #keep: boolean;
  readonly #listeners = new Set<(recorded: RecordedCommand) => void>();
  #commands: RecordedCommand[] = [];

  /** If `keep` is false, the record only tells its listeners. */
  constructor(keep: boolean) {
    this.#keep = keep;
  }

  add(recorded: RecordedCommand): void {
    if (this.#keep) this.#commands.push(recorded);
    for (const listener of this.#listeners) listener(recorded);
  }

  /** All commands, in the order in which they came. */
  all(): readonly RecordedCommand[] {
    return this.#commands;
  }

  count(match: Matcher = anyCommand): number {
    return this.#commands.filter(({ command }) => match(command)).length;
  }

  clear(): void {
    this.#commands = [];
  }

  /** Calls `listener` for each command from now on. Returns the way to stop that. */
  listen(listener: (recorded: RecordedCommand) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
