/** What the tests of groups share: clients on several servers, locks of one test, and the state of both. */
import type { Redis } from "ioredis";
import { expect } from "vitest";
import { type Lock, type LockClientOptions, MultiLock } from "../../src/index.js";
import { type Kind, PLAIN } from "../contract/kinds.js";
import { isMarker } from "../contract/wire.js";
import { Beds } from "../faults/beds.js";
import {
  failOnUnhandledRejections,
  freshName,
  NEVER,
  SOON,
  Stage,
  type Watched,
  watch,
} from "../faults/harness.js";
import { forFile, isPresence, type RecordedCommand, until } from "../support/index.js";

export { NEVER, SOON };

/** Two servers for the tests of one file. The file fails if a promise rejects without a handler. */
export function useStages(): Promise<readonly Stage[]> {
  failOnUnhandledRejections();
  return Promise.all([forFile(Stage.start(["standalone"])), forFile(Stage.start(["standalone"]))]);
}

export interface Place extends LockClientOptions {
  /** Default: the first server. */
  readonly server?: 0 | 1;
}

/** Clients, each behind a proxy of its own, and locks with names that only this test uses. */
export class Hall extends Beds {
  readonly mark: string = freshName();
  static async of(stages: readonly Stage[], ...places: readonly Place[]): Promise<Hall> {
    const beds = places.map(({ server = 0, ...client }) => (stages[server] as Stage).bed({ client }));
    return new Hall(await Promise.all(beds));
  }

  /** The full name of the lock that the test calls by this word; names sort as the words do. */
  name(word: string): string {
    return `${word}-${this.mark}`;
  }

  lock(i: number, word: string, kind: Kind = PLAIN): Lock {
    return kind.make(this.client(i), this.name(word));
  }

  read(i: number, word: string): Lock {
    return this.client(i).getReadWriteLock(this.name(word)).readLock();
  }

  write(i: number, word: string): Lock {
    return this.client(i).getReadWriteLock(this.name(word)).writeLock();
  }

  /** A group of plain locks of one client. */
  multi(i: number, ...words: string[]): MultiLock {
    return new MultiLock(...words.map((word) => this.lock(i, word)));
  }

  /** The keys of this test's held locks and waiters, on all servers. */
  async keys(): Promise<string[]> {
    const all = await Promise.all(this.beds.map((_, i) => keysOf(this.redis(i), this.mark)));
    return [...new Set(all.flat())].sort();
  }

  /** The words of the locks that are held. */
  async held(): Promise<string[]> {
    const ending = `-${this.mark}`;
    return (await this.keys())
      .filter((key) => key.endsWith(ending) && !key.includes("{"))
      .map((key) => key.slice(0, -ending.length));
  }

  /** A connection past the library, to the server of client `i`. */
  redis(i: number): Redis {
    return this.bed(i).observer as Redis;
  }

  /** The remaining milliseconds of a lock's key. */
  ttl(i: number, word: string): Promise<number> {
    return this.redis(i).pttl(this.name(word));
  }

  /** A lock's hash. */
  hash(i: number, word: string): Promise<Record<string, string>> {
    return this.redis(i).hgetall(this.name(word));
  }

  async del(i: number, word: string): Promise<void> {
    await this.redis(i).del(this.name(word));
  }

  /** The scripts that client `i` has sent for locks of this test. */
  scripts(i: number): readonly RecordedCommand[] {
    return this.bed(i).proxy.commands.filter(
      ({ command }) =>
        /^EVAL(SHA)?$/.test(command[0] ?? "") &&
        command.some((word) => word.includes(this.mark)) &&
        !isPresence(command),
    );
  }

  /** The channels of this test's locks that have a listener, on all servers. */
  async channels(): Promise<string[]> {
    const asked = this.beds.map((_, i) => this.redis(i).pubsub("CHANNELS", `*${this.mark}*`));
    return [...new Set((await Promise.all(asked)).flat() as string[])];
  }

  /**
   * Makes a call and resolves when the call waits: it listens to the lock of that word, has tried again since, and has
   * given back the members it took.
   */
  async parked<T>(word: string, call: () => Promise<T>): Promise<Watched<T>> {
    const before = await this.keys();
    const watched = watch(call());
    await until(`it waits for ${word}`, async () => {
      if (watched.state !== "pending") return true;
      const listens = (await this.channels()).some((channel) => channel.includes(this.name(word)));
      return listens && (await this.isQuiet()) && same(await this.holders(), before);
    });
    if (watched.state !== "pending") throw new Error("it did not wait", { cause: watched.error });
    return watched;
  }

  /** The keys of held locks, without those of waiters. */
  async holders(): Promise<string[]> {
    return (await this.keys()).filter((key) => !isPlace(key));
  }

  /** Whether the clients have stopped sending commands for locks of this test. */
  async isQuiet(): Promise<boolean> {
    const count = () => this.beds.reduce((sum, _, i) => sum + this.scripts(i).length, 0);
    const before = count();
    for (let n = 0; n < 3; n++) {
      await Promise.all(this.beds.map(({ redis }) => redis.ping()));
      await new Promise((resolve) => setImmediate(resolve));
    }
    return count() === before;
  }

  /** Soon only markers and fencing counters are left of the locks, and no channel has a listener. */
  async expectNothingLeft(): Promise<void> {
    const isOver = async () => (await this.keys()).length + (await this.channels()).length === 0;
    await until("all is given back", isOver, { timeout: SOON }).catch(() => {});
    expect(await this.keys()).toEqual([]);
    expect(await this.channels()).toEqual([]);
  }
}

async function keysOf(redis: Redis, part: string): Promise<string[]> {
  const keys = await redis.keys(`*${part}*`);
  return keys.filter((key) => !isMarker(key) && !key.startsWith("redisson_lock_token:"));
}

/** True for the keys that the server keeps for waiters. */
function isPlace(key: string): boolean {
  return /^(redisson_lock_queue|redisson_lock_timeout|holdfast_alive|holdfast_writers):/.test(key);
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.join() === other.filter((key) => !isPlace(key)).join();
}
