/**
 * What is known of the servers behind one connection of a RedLock: whether they are there, and which servers they are.
 */
import { isLockError } from "../base/errors.js";
import { noop } from "../base/work.js";
import type { CommandRunner } from "./command-runner.js";
import { isCluster, masterAddress, nodeAt } from "./connection.js";

/** The states of a connection that has not reached a server yet. */
const FRESH: readonly string[] = ["wait", "connecting", "connect"];

export class KnownMasters {
  readonly #runner: CommandRunner;
  #arrival: Promise<void> | undefined;
  /** The run ids by address. They are kept here because locks are made anew all the time, and servers are not. */
  readonly #runIds = new Map<string, Promise<string | undefined>>();

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

  /** The run id of the server that has this key; undefined if the user may not ask for it. */
  runIdOf(key: string): Promise<string | undefined> {
    const address = masterAddress(this.#runner.connection, key);
    const asked = this.#runIds.get(address) ?? this.#askRunId(address);
    this.#runIds.set(address, asked);
    asked.catch(() => this.#runIds.delete(address));
    return asked;
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

  async #askRunId(address: string): Promise<string | undefined> {
    const runner = this.#runner;
    const { connection } = runner;
    const node = isCluster(connection) ? nodeAt(connection, address) : undefined;
    try {
      const asked = node
        ? runner.withTimeout("", node.call("INFO", "server"))
        : runner.command("INFO", "server");
      return /^run_id:(\w+)/m.exec(String(await asked))?.[1];
    } catch (error) {
      if (isLockError(error, "UNSUPPORTED") || !isLockError(error)) return undefined;
      throw error;
    }
  }
}
