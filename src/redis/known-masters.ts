/** What is known of the servers behind a connection that several of them vote with: whether they are there, and who they are. */
import { isLockError } from "../base/errors.js";
import type { CommandRunner } from "./command-runner.js";
import { addressOf, isCluster, masterAddress } from "./connection.js";
import { onEvents } from "./connection-events.js";

/** Of a connection on its first way to a server. */
const FRESH: readonly string[] = ["wait", "connecting", "connect"];

export class KnownMasters {
  /** A call has waited for the first connection: no further one waits for a minority of those. */
  awaited = false;
  /** By the lock's key: how many votes are still to come that nobody waits for any more. */
  readonly overdue: Map<string, number> = new Map();
  readonly #runner: CommandRunner;
  #arrival: Promise<void> | undefined;
  /** By address: locks are made anew all the time, servers are not. */
  readonly #runIds = new Map<string, Promise<string | undefined>>();

  constructor(runner: CommandRunner) {
    this.#runner = runner;
  }

  /** Whether it has not been connected yet. */
  get isFresh(): boolean {
    const { connection, connectionEpoch } = this.#runner;
    return connectionEpoch === 0 && FRESH.includes(connection.status);
  }

  /** Resolves when it is connected; rejects when that fails or takes longer than a command may. Calls share one. */
  arrival(): Promise<void> {
    this.#arrival ??= this.#awaitReady().finally(() => {
      this.#arrival = undefined;
    });
    return this.#arrival;
  }

  /** The run id of the server that has this key; undefined if the user may not know it. */
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
        for (const end of stops) end();
        settle();
      };
      const ready = stop(resolve);
      const failed = stop(() => reject(this.#runner.unavailable("")));
      const stops = [
        clock.after(commandTimeout, failed),
        onEvents(connection, ["ready"], ready),
        onEvents(connection, ["close"], failed),
      ];
      // One that connects lazily; its events tell how that ends.
      if (connection.status === "wait") connection.connect().catch(() => undefined);
    });
  }

  async #askRunId(address: string): Promise<string | undefined> {
    const runner = this.#runner;
    const { connection } = runner;
    const node = isCluster(connection)
      ? connection.nodes("master").find((master) => addressOf(master) === address)
      : undefined;
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
