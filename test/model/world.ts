/**
 * Two clients on one real server, and time that passes only when a history says so.
 *
 * The clients share a connection, so all their commands have one order, and a history can be repeated. They have virtual
 * clocks. On the server, time passes by a script that moves every TTL and every score that is a time. The same script
 * takes back the real milliseconds since its last run, so a slow machine changes nothing.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { INTERNALS } from "../../src/client-options.js";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { VirtualClock } from "../support/virtual-clock.js";
import { Traffic } from "./traffic.js";

/** Milliseconds. */
export const WATCHDOG = 30_000;
export const POLL_CAP = 16_000;
export const CLIENTS = 2;

/** Milliseconds of real time. */
const LONGEST_CLOSE = 5_000;

/** More timers than can be due in the longest step of time. */
const MOST_STEPS = 1_000;

/**
 * Keeps the real and the virtual time of its last run in a key of its own, so that it may be sent again. Returns the
 * real milliseconds since then, and all keys, each with its TTL.
 */
const TIME_TRAVEL = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('HMGET', '~last', 'real', 'virtual')
local seen = tonumber(last[1] or now)
local before = tonumber(last[2] or ARGV[1])
local reached = math.max(before, tonumber(ARGV[1]))
local shift = now - seen - (reached - before)
redis.call('HSET', '~last', 'real', string.format('%d', now), 'virtual', string.format('%d', reached))
local found = {now - seen}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if key ~= '~last' then
    local ttl = redis.call('PTTL', key)
    if ttl >= 0 and shift ~= 0 then
      -- By the instant: before Redis 7.2 time goes on within a script, and keys that end together still shall.
      local instant = redis.call('PEXPIRETIME', key) + shift
      ttl = ttl + shift
      if ttl > 0 and instant > 0 then redis.call('PEXPIREAT', key, instant) else redis.call('DEL', key) end
    end
    local timed = string.find(key, 'redisson_lock_timeout', 1, true) or string.find(key, 'holdfast_', 1, true)
      or string.find(key, ':timeout$')
    if timed and shift ~= 0 and redis.call('TYPE', key).ok == 'zset' then
      for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        redis.call('ZINCRBY', key, shift, member)
      end
    end
    if redis.call('EXISTS', key) == 1 then
      found[#found + 1] = key
      found[#found + 1] = ttl
    end
  end
end
return found`;

export interface Inhabitant {
  readonly client: LockClient;
  readonly clock: VirtualClock;
  closed: boolean;
}

export class World {
  readonly inhabitants: Inhabitant[] = [];
  readonly #redis: Redis;
  readonly #traffic: Traffic;
  #script = "";
  #lag = 0;
  /** Time that has passed here, but not yet on the server. */
  #owed = 0;
  #now = 1_000;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#traffic = new Traffic(redis, () => {
      // A failure need not be handled here: the next travel fails too, and is awaited.
      if (this.#owed > 0) this.travel().catch(() => {});
    });
    for (let i = 0; i < CLIENTS; i++) this.inhabitants.push(this.#settle());
  }

  /** Milliseconds, the same for all clients. */
  get now(): number {
    return this.#now;
  }

  /** Empties the server, and replaces each client that was closed. */
  async renew(): Promise<void> {
    this.#script ||= (await this.#redis.script("LOAD", TIME_TRAVEL)) as string;
    await this.#redis.flushdb();
    this.#lag = 0;
    for (const [i, { closed }] of this.inhabitants.entries())
      if (closed) this.inhabitants[i] = this.#settle();
    await this.travel();
  }

  async end(): Promise<void> {
    for (const inhabitant of this.inhabitants) await this.close(inhabitant);
    this.#redis.disconnect();
  }

  /** Closes a client; if that takes too long, the client is left behind. */
  async close(inhabitant: Inhabitant): Promise<void> {
    inhabitant.closed = true;
    const limit = new AbortController();
    const closing = inhabitant.client.close({ timeout: 0 }).finally(() => limit.abort());
    const late = sleep(LONGEST_CLOSE, undefined, { signal: limit.signal }).catch(() => closing);
    await Promise.race([closing, late]);
  }

  /**
   * The longest real time between two travels, in milliseconds: the precision of a TTL that was set or read meanwhile.
   */
  get lag(): number {
    return this.#lag;
  }

  /** A view of the server past the clients, in the order of their commands. */
  get server(): Redis {
    return this.#redis;
  }

  /** The server's clock at the last travel, in milliseconds: its stored times are right by that. */
  async serverTime(): Promise<number> {
    return Number(await this.#redis.hget("~last", "real"));
  }

  /** Cuts the clients' own connections; resolves when they have noticed. They come back by themselves. */
  async deafen(): Promise<void> {
    await this.rest();
    await this.#traffic.deafen();
  }

  /** Resolves when nothing happens any more until time passes. */
  rest(): Promise<void> {
    return this.#traffic.rest();
  }

  /** The channels of the lock with that name that have a listener. */
  async channels(name: string): Promise<string[]> {
    return (await this.#redis.pubsub("CHANNELS", `*{${name}}*`)) as string[];
  }

  /** Deletes the lock with that name, without a message. A queue stays. */
  async lose(name: string): Promise<void> {
    await this.#redis.del(name, ...(await this.#redis.keys(`{${name}}:*:rwlock_timeout:*`)));
  }

  /** Lets the time that has passed here pass on the server; resolves with the remaining keys and their TTLs. */
  async travel(): Promise<Map<string, number>> {
    this.#owed = 0;
    // One write for this command and those that are sent in the same tick.
    const { stream } = this.#redis;
    stream.cork();
    process.nextTick(() => stream.uncork());
    const [lag = 0, ...reply] = (await this.#redis.evalsha(this.#script, 0, this.#now)) as (
      | string
      | number
    )[];
    this.#lag = Math.max(this.#lag, Number(lag));
    const keys = new Map<string, number>();
    for (let i = 0; i < reply.length; i += 2) keys.set(String(reply[i]), Number(reply[i + 1]));
    return keys;
  }

  /**
   * Lets time pass everywhere, from one due timer to the next. `late`: the client whose timers fire only at the end, as
   * they do when its process gets no time.
   */
  async pass(ms: number, late?: number): Promise<void> {
    const end = this.#now + ms;
    const clocks = this.inhabitants.map(({ clock }) => clock);
    const punctual = clocks.filter((_, i) => i !== late);
    // The server's times are whole milliseconds.
    const nextOf = (of: VirtualClock[]) =>
      Math.max(this.#now, Math.ceil(Math.min(...of.map(({ nextAt }) => nextAt))));
    let steps = 0;
    for (let next = nextOf(punctual); next <= end; next = nextOf(punctual)) {
      if (++steps > MOST_STEPS) throw new Error("timers fire again and again");
      await this.#step(next, punctual);
    }
    do await this.#step(end, clocks);
    while (nextOf(clocks) <= end && ++steps <= MOST_STEPS);
  }

  async #step(now: number, clocks: readonly VirtualClock[]): Promise<void> {
    // This time passes on the server before the next command arrives there.
    this.#owed += now - this.#now;
    this.#now = now;
    for (const { clock } of this.inhabitants) clock.moveTo(now);
    for (const clock of clocks) clock.fire();
    await this.rest();
  }

  #settle(): Inhabitant {
    const clock = new VirtualClock(this.#now);
    const options = {
      watchdogTimeout: WATCHDOG,
      pollCap: POLL_CAP,
      // A long time-out, because these timers fire after each command; no command here is ever unanswered.
      commandTimeout: 1_000_000_000,
      [INTERNALS]: { clock, random: () => 0.5 },
    } as LockClientOptions;
    return { client: new LockClient(this.#redis, options), clock, closed: false };
  }
}
