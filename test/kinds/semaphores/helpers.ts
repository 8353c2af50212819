/** What the tests of semaphores and latches share: clients of one name, the state of both on the server, and events. */
import { expect } from "vitest";
import type {
  CountDownLatch,
  LockClientOptions,
  LockEventName,
  PermitExpirableSemaphore,
  Semaphore,
  SemaphoreRunOptions,
} from "../../../src/index.js";
import { deferred, recordEvents, type SeenEvent } from "../../contract/helpers.js";
import { NamedBeds } from "../../faults/beds.js";
import {
  atLast,
  type BedOptions,
  NEVER,
  SOON,
  type Stage,
  type Watched,
  watch,
} from "../../faults/harness.js";
import { type KeyState, until } from "../../support/index.js";

export { NEVER };
/** Options of clients whose waiters only a message can wake. */
export const asleep: LockClientOptions = { pollCap: NEVER };
/** The lease that Redisson gives a permit without a lease. */
export const NO_LEASE = 922_337_203_685_477;
/** An id, in the user's form, that no permit has. */
export const UNKNOWN = "00112233445566778899aabbccddeeff";

/** The channel of permits; for names without braces. */
export const permitChannel = (name: string): string => `redisson_sc:{${name}}`;
/** The channel of a latch with any name. */
export const latchChannel = (name: string): string => `redisson_countdownlatch__channel__{${name}}`;
/** The key of an expirable semaphore's permits in use; for names without braces. */
export const timeoutsOf = (name: string): string => `{${name}}:timeout`;

export type Setting = LockClientOptions & Pick<BedOptions, "split" | "topology" | "redis" | "cluster">;

const ENTRIES = `
local found = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #found, 2 do
  found[i] = string.gsub(found[i], '.', function(byte) return string.format('%02x', string.byte(byte)) end)
end
return found`;

/** Clients that use a semaphore or latch of one name, that of the first client's bed. */
export class Site extends NamedBeds {
  /**
   * A client for each of these settings; `split` gives its subscriber a proxy of its own. Each client knows the server's
   * time: its first call asks for that, and a test's fault must strike the call that counts.
   */
  static async of(stage: Stage, ...settings: readonly Setting[]): Promise<Site> {
    const site = await Site.fresh(stage, ...settings);
    for (const { client } of site.beds) {
      await atLast(() => client.getCountDownLatch(`{${site.name}}`).countDown());
    }
    return site;
  }

  /** Like {@link of}, with clients that have made no call yet. */
  static async fresh(stage: Stage, ...settings: readonly Setting[]): Promise<Site> {
    const all = settings.length === 0 ? [{}] : settings;
    const beds = await Promise.all(
      all.map(({ split = false, topology = "standalone", redis = {}, cluster = {}, ...client }: Setting) =>
        stage.bed({ split, topology, redis, cluster, client }),
      ),
    );
    return new Site(beds);
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

  /** The value of the key with the name: free permits, or the count of a latch. */
  async value(): Promise<string | null> {
    return this.redis.get(this.name);
  }

  untilValue(value: string | null): Promise<unknown> {
    return until(`${this.name} is ${value}`, async () => (await this.value()) === value, { timeout: SOON });
  }

  /** The permits in use: the id that users see, and when it expires by the server's clock. */
  async entries(): Promise<Map<string, number>> {
    const flat = (await this.bed(0).observer.eval(ENTRIES, 1, timeoutsOf(this.name))) as string[];
    const entries = new Map<string, number>();
    for (let i = 0; i < flat.length; i += 2) entries.set(flat[i] ?? "", Number(flat[i + 1]));
    return entries;
  }

  /** Adds a permit in use that no client of ours knows, as Redisson would. */
  async enter(id: string, expiry: number): Promise<void> {
    await this.redis.zadd(timeoutsOf(this.name), expiry, Buffer.from(id, "hex"));
  }

  untilNobodyListens(): Promise<unknown> {
    return until("nobody listens", async () => (await this.listeners()) === 0);
  }

  /** A run of the semaphore that has begun. It ends when the test calls `leave` with its result. */
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

  /** The name's keys that expire within a minute: markers of ended calls. */
  async markers(): Promise<string[]> {
    const all = Object.entries(await this.bed(0).keys());
    return all.filter((each) => this.#isMarker(each)).map(([key]) => key);
  }

  /** All keys of the name, without {@link markers}. */
  async lasting(): Promise<Record<string, unknown>> {
    const all = Object.entries(await this.bed(0).keys());
    const lasting = all.filter((each) => !this.#isMarker(each));
    return Object.fromEntries(lasting.map(([key, { value }]) => [key, value]));
  }

  #isMarker([key, { ttl }]: [string, KeyState]): boolean {
    return key !== this.name && key !== timeoutsOf(this.name) && ttl > 0 && ttl <= 60_000;
  }

  /** There is only this value, without TTL, besides markers; with null there are only markers. */
  async expectOnly(value: string | null): Promise<void> {
    expect(await this.lasting()).toEqual(value === null ? {} : { [this.name]: value });
    if (value !== null) expect((await this.state()).ttl).toBe(-1);
  }

  /** There are only these free permits and permits in use, besides markers. */
  async expectPermits(free: number, used: number): Promise<void> {
    expect(await this.value()).toBe(String(free));
    expect(await this.redis.zcard(timeoutsOf(this.name))).toBe(used);
    const known = [this.name, timeoutsOf(this.name)];
    expect(Object.keys(await this.lasting()).filter((key) => !known.includes(key))).toEqual([]);
  }

  /** The events of client `i` from now on. */
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

  /** The payloads of all events with one name. */
  of(wanted: LockEventName): SeenEvent["payload"][] {
    return this.all.filter(({ name }) => name === wanted).map(({ payload }) => payload);
  }
}
