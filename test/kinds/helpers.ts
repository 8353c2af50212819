/** What the tests of the kinds share: clients on one server, what the server has of a lock, and who waits for it. */
import { expect } from "vitest";
import {
  fairAlive,
  fairQueue,
  fairTimeouts,
  readHold,
  tokenCounter,
  waitingWriters,
} from "../../src/base/names.js";
import type { Hold, Lock, LockClientOptions } from "../../src/index.js";
import { Beds } from "../faults/beds.js";
import { type Bed, SOON, type Stage, turn, type Watched, watch } from "../faults/harness.js";
import { isPresence, type KeyState, keyState, type Matcher, until } from "../support/index.js";

/** Names of keys. */
export const keysOf: Readonly<
  Record<"alive" | "counter" | "queue" | "timeouts" | "writers", (name: string) => string>
> & { readonly hold: typeof readHold } = {
  alive: fairAlive,
  counter: tokenCounter,
  hold: readHold,
  queue: fairQueue,
  timeouts: fairTimeouts,
  writers: waitingWriters,
};

/** Far above any test's time: who is woken by the poll fails. */
export const NEVER = 30_000;

/** Clients on one server, all of which use the lock that is named after the first one's bed. */
export class Scene extends Beds {
  readonly name: string;
  readonly #stage: Stage;

  private constructor(stage: Stage, beds: readonly Bed[], name: string) {
    super(beds);
    this.#stage = stage;
    this.name = name;
  }

  /** A client for each of these options; `split` gives its subscriber a proxy of its own. */
  static async of(
    stage: Stage,
    ...options: readonly (LockClientOptions & { readonly split?: boolean })[]
  ): Promise<Scene> {
    const beds = await Promise.all(
      options.map(({ split = false, ...client }) => stage.bed({ split, client })),
    );
    const [first] = beds;
    if (first === undefined) throw new Error("a scene needs a client");
    return new Scene(stage, beds, first.name);
  }

  fair(i: number): Lock {
    return this.client(i).getFairLock(this.name);
  }

  read(i: number, preferWriters = true): Lock {
    return this.client(i).getReadWriteLock(this.name, { preferWriters }).readLock();
  }

  write(i: number, preferWriters = true): Lock {
    return this.client(i).getReadWriteLock(this.name, { preferWriters }).writeLock();
  }

  /** One command, past all clients. */
  call(...command: (string | number)[]): Promise<unknown> {
    return this.#stage.server.call(...command);
  }

  /** The lock's hash. */
  hash(): Promise<KeyState> {
    return this.key(this.name);
  }

  key(key: string): Promise<KeyState> {
    return keyState(this.bed(0).observer, key);
  }

  /** Milliseconds that a key has to go. */
  async ttl(key?: string): Promise<number> {
    return (await this.key(key ?? this.name)).ttl;
  }

  /** The fair queue, head first. */
  async queue(): Promise<string[]> {
    return ((await this.key(fairQueue(this.name))).value ?? []) as string[];
  }

  untilQueued(length: number, timeout: number = SOON): Promise<unknown> {
    return until(`${length} are queued`, async () => (await this.queue()).length === length, { timeout });
  }

  /** How many channels of this lock are listened to, each counted for every client. */
  async listeners(): Promise<number> {
    const channels = (await this.call("PUBSUB", "CHANNELS", `*${this.name}*`)) as string[];
    if (channels.length === 0) return 0;
    const pairs = (await this.call("PUBSUB", "NUMSUB", ...channels)) as unknown[];
    return pairs.reduce((sum: number, value, i) => (i % 2 === 1 ? sum + Number(value) : sum), 0);
  }

  /** How often a client has sent a script that has to do with the lock. */
  scripts(i: number): number {
    return this.bed(i).proxy.count(this.own);
  }

  /** Matches the scripts that have to do with the lock. */
  get own(): Matcher {
    return (command) => {
      const [verb = "", , ...rest] = command;
      return (
        /^EVAL(SHA)?$/.test(verb) && rest.some((word) => word.includes(this.name)) && !isPresence(command)
      );
    };
  }

  /**
   * Calls for the lock through client `i`, and resolves when the call waits: it was refused, its channel is listened
   * to, and it has asked once more since, so that from here on only a message or a poll can bring it the lock.
   */
  async parked<T>(i: number, call: () => Promise<T>): Promise<Watched<T>> {
    const [channels, scripts] = [await this.listeners(), this.scripts(i)];
    const watched = watch(call());
    await until("it has asked, listened and asked again", async () => {
      if (watched.state !== "pending") return true;
      return this.scripts(i) >= scripts + 2 && (await this.listeners()) > channels;
    });
    if (watched.state !== "pending") throw new Error("it did not wait", { cause: watched.error });
    await this.bed(i).redis.ping(); // the second try is answered
    return watched;
  }

  /** Soon nothing of the lock is left but markers, which lapse, and the fencing counter, which must not. */
  async expectNothingLeft(): Promise<void> {
    const left = async (): Promise<string[]> =>
      Object.keys(await this.bed(0).keys()).filter(
        (key) => !MARKER.test(key) && key !== tokenCounter(this.name),
      );
    await until(`${this.name} is free`, async () => (await left()).length === 0).catch(() => {});
    expect(await left()).toEqual([]);
    for (const [key, { ttl }] of Object.entries(await this.bed(0).keys())) {
      if (!MARKER.test(key)) continue;
      expect(ttl, key).toBeGreaterThan(0);
      expect(ttl, key).toBeLessThanOrEqual(60_000);
    }
  }
}

/** Keys that say that something is over. */
const MARKER = /^(redisson_unlock_latch|holdfast_over):/;

/** Lets all that is under way come through, and fails if the call is over then. */
export async function expectStillWaiting(scene: Scene, ...calls: readonly Watched<unknown>[]): Promise<void> {
  for (const bed of scene.beds) await bed.redis.ping();
  await turn();
  for (const bed of scene.beds) await bed.redis.ping();
  await turn();
  expect(calls.map(({ state }) => state)).toEqual(calls.map(() => "pending"));
}

/** The server's clock in milliseconds. */
export async function serverTime(scene: Scene): Promise<number> {
  const [seconds, micros] = (await scene.call("TIME")) as [string, string];
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** How many of these are inside at a time, at most. */
export class Room {
  inside = 0;
  most = 0;

  async visit(stay: () => Promise<unknown> | unknown): Promise<void> {
    this.most = Math.max(this.most, ++this.inside);
    try {
      await stay();
    } finally {
      this.inside--;
    }
  }
}

/** Gives back what is held; for the end of a test. */
export async function unlockAll(holds: readonly Hold[]): Promise<void> {
  await Promise.all(holds.map((hold) => hold.unlock()));
}
