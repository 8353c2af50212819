/** Looks at locks without taking part: at one by its name, or at all that are held. */
import { isLockError, THIS_PROCESS } from "../base/errors.js";
import type { LockKind } from "../base/events.js";
import { fairQueue, permitLeases, sharesOneSlot, tokenCounter } from "../base/names.js";
import { dateOf } from "../base/platform.js";
import type { Env } from "../env.js";
import { clientIdOf, type Presences } from "../presence/lookout.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { addressOf, type Connection, isCluster, lookForMasters } from "../redis/connection.js";
import { counterInspect, lockInspect } from "../scripts/generated.js";
import { readNumber } from "../scripts/inspected.js";
import { type LockInfo, readLockInfo } from "./lock-info.js";

/** Options of {@link LockClient.inspect}. */
export interface InspectOptions {
  /** Which kinds are looked at: locks, or "all": semaphores, permits and latches too. Default locks. */
  kinds?: "locks" | "all" | undefined;
}

/** Options of {@link LockClient.list}. */
export interface ListOptions extends InspectOptions {
  /** A glob pattern as Redis knows it, for names without the prefix. Default all. */
  match?: string | undefined;
  /** How many keys the server looks at in one step. Default 1 000. */
  count?: number | undefined;
}

/** The client's connection, or the connection to one master of a cluster. */
type Asked = Pick<Connection, "call">;

/**
 * Keys of strings that belong to a lock or a call, and are no numbers of a name. The last pattern is that of read
 * holds.
 */
const EXTRA_KEY =
  /^(?:redisson_lock_token|redisson_unlock_latch|holdfast_over):|:[^:]+:\d+:rwlock_timeout:\d+$/;

/** How many numbers the kind is remembered of. */
const MOST_KNOWN = 1_000;

/** What a number can be. */
export type NumberKind = "semaphore" | "permits" | "latch";

/** How many names are looked at together: more would keep other calls waiting. */
const TOGETHER = 100;

/** Of so many locks the holder is asked for at a time: calls that time out together must not load a server that may be the reason. */
const MOST_ASKED = 10;

/** A lock's name, and its key with the prefix. */
interface NamedKey {
  readonly lockName: string;
  readonly key: string;
}

export class Inspector {
  readonly #env: Env;
  readonly #runner: CommandRunner;
  /** The questions for holders, by the lock's key. */
  readonly #asked = new Map<string, Promise<string | undefined>>();
  /** The kind of the numbers that this client used last, by key. */
  readonly #known = new Map<string, NumberKind>();

  constructor(env: Env) {
    this.#env = env;
    this.#runner = env.runner;
  }

  /** Remembers the kind that this client uses a number as: the key itself does not show it. */
  note(key: string, kind: NumberKind): void {
    this.#known.delete(key);
    this.#known.set(key, kind);
    if (this.#known.size > MOST_KNOWN) this.#known.delete(this.#known.keys().next().value as string);
  }

  /**
   * What has this name and key; null if the name is free, and for a semaphore or latch unless `kinds` is "all".
   * @throws WRONG_DATA for any other data
   */
  async inspect(name: string, key: string, kinds: InspectOptions["kinds"]): Promise<LockInfo | null> {
    const presences = this.#env.presence.lookOut();
    const lock = await this.#lock(name, key).catch(asOther);
    const number = lock === undefined ? await this.#number(name, key, presences).catch(asOther) : null;
    // Neither: a lock may have been taken since the first look.
    const shown =
      number === undefined ? await this.#lock(name, key) : (lock ?? (kinds === "all" ? number : null));
    return shown && this.#told(shown, key, await presences);
  }

  /**
   * Describes for people who holds one of these locks; a holder in another process goes before one in this process.
   * Resolves with undefined if that is not known. Never rejects.
   */
  async whoHolds(locks: readonly NamedKey[]): Promise<string | undefined> {
    const holders = await Promise.all(locks.map((lock) => this.#ask(lock))).catch(() => []);
    const known = holders.filter(Boolean);
    return known.find((holder) => holder !== THIS_PROCESS) ?? known[0];
  }

  /** Calls for one lock that time out together share the answer. */
  #ask(lock: NamedKey): Promise<string | undefined> | undefined {
    const { key } = lock;
    const known = this.#asked.get(key);
    if (known || this.#asked.size === MOST_ASKED) return known;
    const asked = this.#holder(lock).finally(() => this.#asked.delete(key));
    this.#asked.set(key, asked);
    return asked;
  }

  /** The first holder of a lock, in words. Reads what the client of that holder tells, and no other. */
  async #holder({ lockName, key }: NamedKey): Promise<string | undefined> {
    const shown = await this.#lock(lockName, key);
    const [first] = shown?.holders ?? [];
    if (!shown || !first) return undefined;
    const { ownerId } = first;
    const { presence, clock } = this.#env;
    const presences = await presence.lookOut(clientIdOf(ownerId));
    const [its, own] = [presences.client(ownerId), presence.client];
    // A client of this process with the same label: its name would tell no more than "this process".
    if (its && its.host === own.host && its.pid === own.pid && its.label === own.label) return THIS_PROCESS;
    const since = presences.since(key, ownerId);
    const time =
      since === undefined ? "" : ` for ${Math.max(0, Math.round((clock.wall() - since) / 1_000))} s`;
    return `${its ? `${its.label} (pid ${its.pid})` : `owner ${ownerId}`}${time}`;
  }

  /** All that is held, in no order. A lock that is taken or given back meanwhile may be missing or not. */
  async *list(match: string, count: number, kinds: InspectOptions["kinds"]): AsyncIterable<LockInfo> {
    const presences = this.#env.presence.lookOut();
    // SCAN may name a key more than once.
    const seen = new Set<string>();
    const types = kinds === "all" ? ["hash", "string"] : ["hash"];
    for (const master of await this.#masters()) {
      for (const type of types) {
        for await (const keys of this.#scan(master, match, count, type)) {
          const fresh = keys.filter((key) => this.#canBeShown(key, type) && !seen.has(key) && seen.add(key));
          for (let i = 0; i < fresh.length; i += TOGETHER) {
            yield* await this.#lookAt(fresh.slice(i, i + TOGETHER), type, presences);
          }
        }
      }
    }
  }

  async #lookAt(keys: readonly string[], type: string, presences: Promise<Presences>): Promise<LockInfo[]> {
    const look = async (key: string) => {
      const name = this.#nameOf(key);
      const shown = await (type === "string" ? this.#number(name, key, presences) : this.#lock(name, key));
      return shown && this.#told(shown, key, await presences);
    };
    // A list does not fail at other data: a hash that is no lock, or a text that is no number, is left out.
    const found = await Promise.all(keys.map((key) => look(key).catch(asOther)));
    return found.filter((info) => !!info);
  }

  /** A lock of any kind. */
  #lock(name: string, key: string): Promise<LockInfo | null> {
    const call = lockInspect.with([key, fairQueue(key), tokenCounter(key)], []);
    return this.#runner.call(name, () => call, readLockInfo(name));
  }

  /** A semaphore, permits or a latch: a number, and how many of its permits are out. Its waiters tell what it is. */
  async #number(name: string, key: string, presences: Promise<Presences>): Promise<LockInfo | null> {
    const call = counterInspect.with([key, permitLeases(key)], []);
    const { permits, out, hasLeases, isSet } = await this.#runner.call(name, () => call, readNumber);
    if (!isSet) return null;
    const [wait] = (await presences).waits(key);
    const kind = hasLeases ? "permits" : (wait?.[1].kind ?? this.#known.get(key));
    return { name, holders: [], waiters: [], waiting: [], ttl: -1, ...shownAs(kind, permits, out) };
  }

  /** Adds what clients tell to what the keys show. */
  #told(shown: LockInfo, key: string, presences: Presences): LockInfo {
    const holders = shown.holders.map((holder) => {
      const { ownerId } = holder;
      const since = presences.since(key, ownerId);
      return {
        ...holder,
        client: presences.client(ownerId) ?? null,
        since: since === undefined ? null : dateOf(since),
      };
    });
    const waiting = presences.waits(key).map(([client, { ownerId, since, mode, holds = [] }]) => ({
      ...(ownerId === undefined ? {} : { ownerId }),
      client,
      since: dateOf(since),
      ...(mode === undefined ? {} : { mode }),
      holds: holds.map((held) => this.#nameOf(held)),
    }));
    return { ...shown, holders, waiting };
  }

  #nameOf(key: string): string {
    const { prefix } = this.#env.settings;
    return prefix && key.startsWith(`${prefix}:`) ? key.slice(prefix.length + 1) : key;
  }

  /** Every lock is a hash, and every number a string. */
  async *#scan(master: Asked, match: string, count: number, type: string): AsyncIterable<string[]> {
    const { prefix } = this.#env.settings;
    const pattern = prefix ? `${escaped(prefix)}:${match}` : match;
    let cursor = "0";
    do {
      this.#env.assertOpen("");
      const args = [cursor, "MATCH", pattern, "COUNT", String(count), "TYPE", type];
      const send = () => master.call("SCAN", ...args);
      const read = (reply: unknown) => reply as [string, string[]];
      const [next, keys] = await this.#runner.call("", () => ({ send }), read);
      cursor = String(next);
      yield keys;
    } while (cursor !== "0");
  }

  /** On a cluster other data may have names whose keys are in different slots; no lock has such a name. */
  #canBeShown(key: string, type: string): boolean {
    if (type === "string" && EXTRA_KEY.test(key)) return false;
    return !this.#runner.isCluster || sharesOneSlot(key);
  }

  async #masters(): Promise<readonly Asked[]> {
    const { connection } = this.#runner;
    if (!isCluster(connection)) return [connection];
    // After an answer from any master ioredis knows all masters.
    if (connection.nodes("master").length === 0) await this.#runner.command("PING");
    const masters = connection.nodes("master");
    const reached = new Set(masters.map(addressOf));
    // Of one that it has lost ioredis knows the slots alone.
    if (connection.slots.some((servers) => servers?.[0] !== undefined && !reached.has(servers[0]))) {
      lookForMasters(connection);
      throw this.#runner.unavailable("");
    }
    return masters;
  }
}

/** What a number is shown as. One that shows no kind of its own may be the permits of a semaphore, or a count. */
function shownAs(
  kind: LockKind | undefined,
  free: number,
  out: number,
): Pick<LockInfo, "kind" | "permits" | "limit" | "count"> {
  if (kind === "latch") return { kind, count: free };
  if (kind === "permits") return { kind, permits: free, limit: free + out };
  return { kind: "semaphore", permits: free, ...(kind === "semaphore" ? {} : { count: free }) };
}

/** For the `catch` of a look: undefined for data of another kind. */
function asOther(error: unknown): undefined {
  if (!isLockError(error, "WRONG_DATA")) throw error;
}

/** Text that stands for itself in a glob pattern. */
function escaped(text: string): string {
  return text.replaceAll(/[*?[\]^\\]/g, "\\$&");
}
