/** Looks at locks without taking part: one by its name, or all that there are. */
import type { LockError } from "../base/errors.js";
import { fairQueue, sharesOneSlot, tokenCounter } from "../base/names.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { type Connection, isCluster } from "../redis/connection.js";
import { lockInspect } from "../scripts/generated.js";
import { type LockInfo, readLockInfo } from "./lock-info.js";

export interface ListOptions {
  /** A glob pattern as Redis knows it, for names without the prefix. Default all. */
  match?: string | undefined;
  /** How many keys the server looks at in one step. Default 1 000. */
  count?: number | undefined;
}

export interface InspectorOptions {
  readonly runner: CommandRunner;
  /** Before every name; empty for none. */
  readonly prefix: string;
  /** @throws CLIENT_CLOSED */
  readonly assertOpen: () => void;
}

/** Names whose locks are looked at together: more would keep other calls waiting. */
const TOGETHER = 100;

export class Inspector {
  readonly #options: InspectorOptions;

  constructor(options: InspectorOptions) {
    this.#options = options;
  }

  /**
   * The lock of this name and key; null if it is free, or a semaphore or latch.
   * @throws WRONG_DATA for anything else, unless `recover` makes something of it
   */
  inspect(
    name: string,
    key: string,
    recover?: (error: LockError) => null | undefined,
  ): Promise<LockInfo | null> {
    const keys = { lock: key, queue: fairQueue(key), counter: tokenCounter(key) };
    return this.#options.runner.call(
      { lockName: name, script: lockInspect, keys, args: {} },
      readLockInfo(name),
      recover,
    );
  }

  /** All locks that are held, in no order. One that is taken or given back meanwhile may be missing or not. */
  async *list(match: string, count: number): AsyncIterable<LockInfo> {
    const seen = new Set<string>();
    for (const master of await this.#masters()) {
      for await (const keys of this.#scan(master, match, count)) {
        const candidates = keys.filter((key) => this.#canBeLock(key));
        for (let i = 0; i < candidates.length; i += TOGETHER) {
          const infos = await Promise.all(candidates.slice(i, i + TOGETHER).map((key) => this.#look(key)));
          // SCAN may name a key more than once.
          for (const info of infos) {
            if (!info || seen.has(info.name)) continue;
            seen.add(info.name);
            yield info;
          }
        }
      }
    }
  }

  /** Every lock is a hash; nothing else of this library is one. */
  async *#scan(master: Connection, match: string, count: number): AsyncIterable<string[]> {
    const { runner, prefix, assertOpen } = this.#options;
    const pattern = prefix ? `${escaped(prefix)}:${match}` : match;
    let cursor = "0";
    do {
      assertOpen();
      const args = [cursor, "MATCH", pattern, "COUNT", String(count), "TYPE", "hash"];
      const send = () => master.call("SCAN", ...args);
      const read = (reply: unknown) => reply as [string, string[]];
      const [next, keys] = await runner.send({ lockName: "", send, read }, runner.commandTimeout);
      cursor = String(next);
      yield keys;
    } while (cursor !== "0");
  }

  /** On a cluster no lock has a name whose keys are in different slots, but other data may. */
  #canBeLock(key: string): boolean {
    return !this.#options.runner.isCluster || sharesOneSlot(key);
  }

  #look(key: string): Promise<LockInfo | null> {
    const { prefix } = this.#options;
    return this.inspect(prefix ? key.slice(prefix.length + 1) : key, key, passOver);
  }

  async #masters(): Promise<readonly Connection[]> {
    const { runner } = this.#options;
    const { connection } = runner;
    if (!isCluster(connection)) return [connection];
    // An answer from any of them: now all are known.
    if (connection.nodes("master").length === 0) await runner.command("PING");
    return connection.nodes("master");
  }
}

/** Somebody's hash is no lock, and nothing that a list fails at. */
function passOver(error: LockError): null | undefined {
  return error.code === "WRONG_DATA" ? null : undefined;
}

/** Text that stands for itself in a glob pattern. */
function escaped(text: string): string {
  return text.replaceAll(/[*?[\]^\\]/g, "\\$&");
}
