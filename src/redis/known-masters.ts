/**
 * What is known of the server behind one connection of a RedLock: whether it has been there yet.
 */
import { noop } from "../base/work.js";
import type { CommandRunner } from "./command-runner.js";

/** The states of a connection that has not reached a server yet. */
const FRESH: readonly string[] = ["wait", "connecting", "connect"];

export class KnownMasters {
  readonly #runner: CommandRunner;
  #arrival: Promise<void> | undefined;

  constructor(runner: CommandRunner) {
    this.#runner = runner;
  }

  /** True while the connection has not been ready yet. */
  get isFresh(): boolean {
    const { connection, connectionEpoch } = this.#runner;
    return connectionEpoch === 0 && FRESH.includes(connection.status);
  }

  /**
   * Resolves when the connection is ready; rejects if that fails or takes longer than a command may. Calls share one
   * wait.
   */
  arrival(): Promise<void> {
    this.#arrival ??= this.#awaitReady().finally(() => {
      this.#arrival = undefined;
    });
    return this.#arrival;
  }

  #awaitReady(): Promise<void> {
    const { clock, connection, commandTimeout } = this.#runner;
    return new Promise((resolve, reject) => {
      const stop = (settle: () => void) => () => {
        cancel();
        connection.off("ready", ready);
        connection.off("close", failed);
        settle();
      };
      const ready = stop(resolve);
      const failed = stop(() => reject(this.#runner.unavailable("")));
      const cancel = clock.after(commandTimeout, failed);
      connection.on("ready", ready);
      connection.on("close", failed);
      // It connects only when it is told to; its events report how that ends.
      if (connection.status === "wait") connection.connect().catch(noop);
    });
  }
}
