/**
 * What the tests of semaphores and latches share: clients that use one name, what the server has of it, and who waits
 * for it. Knows Redisson's keys and channels by name, and nothing of the library's scripts.
 */
import type { Redis } from "ioredis";
import { expect } from "vitest";
import type {
  CountDownLatch,
  LockClientOptions,
  LockEventName,
  PermitExpirableSemaphore,
  Semaphore,
  SemaphoreRunOptions,
} from "../../src/index.js";
import { deferred, recordEvents, type SeenEvent } from "../contract/helpers.js";
import { Beds } from "../faults/beds.js";
import {
  atLast,
  type Bed,
  type BedOptions,
  SOON,
  type Stage,
  turn,
  type Watched,
  watch,
} from "../faults/harness.js";
import { type KeyState, keyState, type Matcher, until } from "../support/index.js";

/** Far above any test's time: who is woken by the poll fails. */
export const NEVER = 60_000;
/** Who waits is woken by a message, if at all. */
export const asleep: LockClientOptions = { pollCap: NEVER };
/** How Redisson marks a permit without lease. */
export const NO_LEASE = 922_337_203_685_477;
/** The user's view of an id that nobody has. */
export const UNKNOWN = "00112233445566778899aabbccddeeff";

/** Where permits are announced; for names without braces. */
export const permitChannel = (name: string): string => `redisson_sc:{${name}}`;
/** Where a latch is announced, whatever its name. */
export const latchChannel = (name: string): string => `redisson_countdownlatch__channel__{${name}}`;
/** The permits in use of an expirable semaphore; for names without braces. */
export const timeoutsOf = (name: string): string => `{${name}}:timeout`;

export type Setting = LockClientOptions & Pick<BedOptions, "split" | "topology" | "redis" | "cluster">;

const ENTRIES = `
local found = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #found, 2 do
  found[i] = string.gsub(found[i], '.', function(byte) return string.format('%02x', string.byte(byte)) end)
end
return found`;

/** Clients that use a semaphore or latch of one name, that of the first one's bed. */
export class Site extends Beds {
  readonly name: string;

  private constructor(beds: readonly Bed[], name: string) {
    super(beds);
    this.name = name;
  }

  /**
   * A client for each of these settings; `split` gives its subscriber a proxy of its own. Each knows the server's time:
   * the first call asks for it, and what strikes a test's call is to strike the one that counts.
   */
  static async of(stage: Stage, ...settings: readonly Setting[]): Promise<Site> {
    const site = await Site.fresh(stage, ...settings);
    for (const { client } of site.beds) {
      await atLast(() => client.getCountDownLatch(`{${site.name}}`).countDown());
    }
    return site;
  }

  /** As {@link of}, with clients that have made no call yet. */
  static async fresh(stage: Stage, ...settings: readonly Setting[]): Promise<Site> {
    const all = settings.length === 0 ? [{}] : settings;
    const beds = await Promise.all(
      all.map(({ split = false, topology = "standalone", redis = {}, cluster = {}, ...client }: Setting) =>
        stage.bed({ split, topology, redis, cluster, client }),
      ),
    );
    return new Site(beds, beds[0]?.name ?? "");
  }

  semaphore(i = 0): Semaphore {
    return this.client(i).getSemaphore(this.name);
  }

  permits(i = 0): PermitExpirableSemaphore {
    return this.client(i).getPermitExpirableSemaphore(this.name);
  }

  latch(i = 0): CountDownLatch {
    return this.client(i).getCountDownLatch(this.name);
  }

  /** Past all clients; of a cluster, a client that finds the way by itself. */
  get redis(): Redis {
    return this.bed(0).observer as unknown as Redis;
  }

  state(key: string = this.name): Promise<KeyState> {
    return keyState(this.bed(0).observer, key);
  }

  /** What is at the name: free permits, or the count of a latch. */
  async value(): Promise<string | null> {
    return this.redis.get(this.name);
  }

  untilValue(value: string | null): Promise<unknown> {
    return until(`${this.name} is ${value}`, async () => (await this.value()) === value, { timeout: SOON });
  }

  /** The permits in use by their ids as users see them, and when each lapses by the server's clock. */
  async entries(): Promise<Map<string, number>> {
    const flat = (await this.bed(0).observer.eval(ENTRIES, 1, timeoutsOf(this.name))) as string[];
    const entries = new Map<string, number>();
    for (let i = 0; i < flat.length; i += 2) entries.set(flat[i] ?? "", Number(flat[i + 1]));
    return entries;
  }

  /** A permit in use that no client of ours knows, as Redisson would make it. */
  async enter(id: string, expiry: number): Promise<void> {
    await this.redis.zadd(timeoutsOf(this.name), expiry, Buffer.from(id, "hex"));
  }

  /** The server's clock in milliseconds. */
  async now(): Promise<number> {
    const [seconds, micros] = (await this.bed(0).observer.eval(
      "return redis.call('TIME')",
      1,
      this.name,
    )) as string[];
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  }

  /** Matches what has to do with the name, but for subscriptions. */
  get own(): Matcher {
    return ([verb = "", ...words]) =>
      !verb.endsWith("SUBSCRIBE") && words.some((word) => word.includes(this.name));
  }

  /** How often a client has sent such a command. */
  asked(i = 0): number {
    return this.bed(i).proxy.count(this.own);
  }

  /** How many channels of this name are listened to, each counted for every client. Not for clusters. */
  async listeners(): Promise<number> {
    const channels = (await this.redis.pubsub("CHANNELS", `*${this.name}*`)) as string[];
    if (channels.length === 0) return 0;
    const pairs = (await this.redis.pubsub("NUMSUB", ...channels)) as unknown[];
    return pairs.reduce((sum: number, value, i) => (i % 2 === 1 ? sum + Number(value) : sum), 0);
  }

  untilNobodyListens(): Promise<unknown> {
    return until("nobody listens", async () => (await this.listeners()) === 0);
  }

  /**
   * Calls through client `i`, whose first waiter this is, and resolves when it waits: it was refused, it listens, and it
   * has asked once more since, so that from here on only a message or a poll can help it.
   */
  async parked<T>(i: number, call: () => Promise<T>): Promise<Watched<T>> {
    const [listening, asked] = [await this.listeners(), this.asked(i)];
    const watched = watch(call());
    await until("it has asked, listened and asked again", async () => {
      if (watched.state !== "pending") return true;
      return this.asked(i) >= asked + 2 && (await this.listeners()) > listening;
    });
    if (watched.state !== "pending") throw new Error("it did not wait", { cause: watched.error });
    await this.bed(i).redis.ping(); // the second try is answered
    return watched;
  }

  /** A run of the semaphore that has begun, and ends when it is told what to give. */
  async entered(options: SemaphoreRunOptions = {}): Promise<{
    running: Watched<string>;
    leave: (result: string) => void;
  }> {
    const [begun, end] = [deferred(), deferred<string>()];
    const fn = (): Promise<string> => {
      begun.resolve();
      return end.promise;
    };
    const running = watch(this.semaphore().run(fn, options));
    await begun.promise;
    return { running, leave: end.resolve };
  }

  /** Those keys of the name that lapse within a minute: markers of calls that are over. */
  async markers(): Promise<string[]> {
    const all = Object.entries(await this.bed(0).keys());
    return all.filter((each) => this.#isMarker(each)).map(([key]) => key);
  }

  /** All keys of the name but {@link markers}. */
  async lasting(): Promise<Record<string, unknown>> {
    const all = Object.entries(await this.bed(0).keys());
    const lasting = all.filter((each) => !this.#isMarker(each));
    return Object.fromEntries(lasting.map(([key, { value }]) => [key, value]));
  }

  #isMarker([key, { ttl }]: [string, KeyState]): boolean {
    return key !== this.name && key !== timeoutsOf(this.name) && ttl > 0 && ttl <= 60_000;
  }

  /** Nothing but this value, without end, and markers; null: nothing but markers. */
  async expectOnly(value: string | null): Promise<void> {
    expect(await this.lasting()).toEqual(value === null ? {} : { [this.name]: value });
    if (value !== null) expect((await this.state()).ttl).toBe(-1);
  }

  /** Nothing but so many free permits, as many in use, and markers. */
  async expectPermits(free: number, used: number): Promise<void> {
    expect(await this.value()).toBe(String(free));
    expect(await this.redis.zcard(timeoutsOf(this.name))).toBe(used);
    const known = [this.name, timeoutsOf(this.name)];
    expect(Object.keys(await this.lasting()).filter((key) => !known.includes(key))).toEqual([]);
  }

  /** The calls are still waiting, after all that was under way has come through. */
  async expectStillWaiting(...calls: readonly Watched<unknown>[]): Promise<void> {
    for (let i = 0; i < 2; i++) {
      for (const bed of this.beds) await bed.redis.ping();
      await turn();
    }
    expect(calls.map(({ state }) => state)).toEqual(calls.map(() => "pending"));
  }

  /** What client `i` tells from now on. */
  events(i = 0): Told {
    return new Told(recordEvents(this.client(i)));
  }
}

/** The events of one client. */
export class Told {
  readonly all: readonly SeenEvent[];

  constructor(all: readonly SeenEvent[]) {
    this.all = all;
  }

  /** The payloads of those of one name. */
  of(wanted: LockEventName): SeenEvent["payload"][] {
    return this.all.filter(({ name }) => name === wanted).map(({ payload }) => payload);
  }
}
