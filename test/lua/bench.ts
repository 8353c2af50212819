/**
 * A test of single scripts sets the keys of this server and runs a script. It then sees the reply, the keys and the
 * published messages. The scripts are those of generated.ts, unless tools/mutate-lua.mjs tests these tests.
 */
import type { Redis } from "ioredis";
import { expect } from "vitest";
import { type AnyScript, evalArguments } from "../../src/scripts/script.js";
import { allKeys, forFile, type KeyState, type RedisServer, startRedis } from "../support/index.js";
import { callOf, type Named } from "../support/named.js";

export const LOCK = "job";
export const CHANNEL = "redisson_lock__channel:{job}";
const CLIENT = "6e3814a1-e847-452b-a982-45baf93a1df2";
export const ME: string = `${CLIENT}:1`;
export const OTHER: string = `${CLIENT}:2`;
/** A waiter of the process of ME, to which ME passes the lock. */
export const SUCCESSOR: string = `${CLIENT}:9`;
const TOMBSTONES = "redisson_unlock_latch:{job}:";
export const TOMBSTONE: string = TOMBSTONES + ME;
export const SUCCESSOR_TOMBSTONE: string = TOMBSTONES + SUCCESSOR;
export const MARKER: string = `holdfast_over:{job}:${CLIENT}:1:7`;
export const MOST: number = Number.MAX_SAFE_INTEGER;

/** Milliseconds by which a TTL may have run down since it was set. */
const TOLERANCE = 8_000;

/** The expected or found state of a key; `ttl` -1: no TTL. */
export interface State {
  readonly value: Exclude<KeyState["value"], unknown[]> | string[] | Scores;
  readonly ttl: number;
}

/** A sorted set of times: ms of the server's clock, counted from the last `put`. */
export class Scores {
  readonly members: Readonly<Record<string, number | Later | At>>;

  constructor(members: Scores["members"]) {
    this.members = members;
  }
}

/** A time that a script counts from the moment of its run. */
export interface Later {
  readonly later: number;
}

/** A time on the server's clock. */
export interface At {
  readonly at: number;
}

export function later(ms: number): Later {
  return { later: ms };
}

export function scored(members: Scores["members"], ttl = -1): State {
  return { value: new Scores(members), ttl };
}

/** A hash, such as that of a lock. */
export function held(value: Record<string, string>, ttl: number): State {
  return { value, ttl };
}

export function text(value: string, ttl: number): State {
  return { value, ttl };
}

export type States = Readonly<Record<string, State>>;

/** The lock held by ME, or by OTHER. */
export const mine = (ttl: number, count = "1"): States => ({ [LOCK]: held({ [ME]: count }, ttl) });
export const theirs = (ttl: number, count = "1", owner: string = OTHER): States => ({
  [LOCK]: held({ [owner]: count }, ttl),
});

/** The tombstone of ME's wire id, with what END found: 1 (or 2, 3) the lock, 0 nobody in it, -1 another. */
export const buried = (found: number): States => ({ [TOMBSTONE]: text(String(found), 40_000) });
export const over: States = buried(1);
export const successorOver: States = { [SUCCESSOR_TOMBSTONE]: text("0", 5_000) };

/** The arguments of every forced unlock; its marker with its answer; and the tombstones that it leaves as well. */
export const FORCING_ARGS: Readonly<{ tombstones: string; tombstoneTtl: number; publish: string }> = {
  tombstones: TOMBSTONES,
  tombstoneTtl: 20_000,
  publish: "PUBLISH",
};
export const marked = (...ended: string[]): States => ({ [MARKER]: text(ended.join(" "), 20_000) });
export const forced = (...ended: string[]): States => ({
  ...marked(...ended),
  ...Object.fromEntries(ended.map((id) => [TOMBSTONES + id, text("0", 20_000)])),
});

/** The lock's key with other data. */
export const otherData: States = { [LOCK]: text("theirs", 60_000) };

/** All keys as they were found, or a pattern for them. */
export type Seen = Record<string, { readonly value: unknown; readonly ttl: unknown }>;

export interface Message {
  readonly channel: string;
  readonly payload: string;
}

/** The message of a release for the waiters of a lock. */
export const announced = (payload: string): Message[] => [{ channel: CHANNEL, payload }];

/** A server for the tests of one file. */
export async function useBench(): Promise<Bench> {
  const bench = await forFile(new Bench(await startRedis()));
  await bench.listen();
  return bench;
}

export class Bench {
  readonly server: RedisServer;
  readonly redis: Redis;
  readonly #subscriber: Redis;
  readonly #users = new Map<string, Redis>();
  #messages: Message[] = [];
  /** The server's clock at the last `put` and at the last `look`, in ms. */
  #since = 0;
  #seen = 0;

  constructor(server: RedisServer) {
    this.server = server;
    this.redis = server.connect();
    this.#subscriber = server.connect();
  }

  async listen(): Promise<void> {
    this.#subscriber.on(
      "pmessage",
      (_pattern: string, channel: string, payload: string) => void this.#messages.push({ channel, payload }),
    );
    await this.#subscriber.psubscribe("*");
  }

  /** Makes these keys, and no others, the state of the server. */
  async put(states: States): Promise<void> {
    await this.redis.flushall();
    this.#since = await this.#time();
    // In one pipeline, so that all TTLs start at almost the same time.
    const together = this.redis.pipeline();
    for (const [key, { value, ttl }] of Object.entries(states)) {
      if (typeof value === "string") together.set(key, value);
      else if (Array.isArray(value)) together.rpush(key, ...value);
      else if (value instanceof Scores) {
        for (const [member, at] of Object.entries(value.members)) {
          together.zadd(key, this.#score(at), member);
        }
      } else if (value !== null) together.hset(key, value);
      if (ttl > 0) together.pexpire(key, ttl);
    }
    await together.exec();
    await this.heard();
  }

  #score(at: number | Later | At): number {
    if (typeof at === "number") return this.#since + at;
    return "at" in at ? at.at : this.#since + at.later;
  }

  /** The server's clock in ms. */
  async #time(): Promise<number> {
    const [seconds = 0, microseconds = 0] = (await this.redis.time()).map(Number);
    return seconds * 1_000 + Math.floor(microseconds / 1_000);
  }

  /** All keys of the server, by name; the scores of sorted sets are times since the last `put`. */
  async look(): Promise<Seen> {
    const found = await allKeys(this.redis);
    this.#seen = await this.#time();
    return Object.fromEntries(
      [...found].map(([key, { type, value, ttl }]) => [
        key,
        { value: value && this.#timed(type, value), ttl },
      ]),
    );
  }

  /** What `look` finds if all keys have the given types, values and TTLs. */
  wanted(states: States): Seen {
    return Object.fromEntries(
      Object.entries(states).map(([key, { value, ttl }]) => [
        key,
        { value: this.#wanted(value), ttl: left(ttl) },
      ]),
    );
  }

  async expect(states: States): Promise<void> {
    const seen = await this.look();
    expect(seen).toEqual(this.wanted(states));
  }

  /** Turns a sorted set's scores into times since the last `put`. */
  #timed(type: KeyState["type"], value: KeyState["value"]): unknown {
    if (type !== "zset") return value;
    const entries = value as [string, number][];
    return Object.fromEntries(entries.map(([member, score]) => [member, score - this.#since]));
  }

  #wanted(value: State["value"]): unknown {
    if (!(value instanceof Scores)) return value;
    const wanted = (at: number | Later | At): unknown => {
      const score = this.#score(at) - this.#since;
      if (typeof at === "number" || "at" in at) return score;
      // A script's clock and its view of TTLs may differ by a tick; beyond 2^53 only every second number exists.
      const tick = at.later === MOST ? 2 : 1;
      const fraction = score % 1;
      return whole(score - fraction - tick, score + this.#seen - this.#since + tick, fraction);
    };
    return Object.fromEntries(Object.entries(value.members).map(([member, at]) => [member, wanted(at)]));
  }

  /** The messages since the last call of this. */
  async heard(): Promise<Message[]> {
    // Messages that the server has sent before its answer have arrived by then.
    await this.#subscriber.ping();
    return this.#messages.splice(0);
  }

  /** A function that runs a script: by EVALSHA, or by EVAL if the server does not know the script. */
  runner(script: AnyScript, redis: Redis = this.redis) {
    return async (keys: Named, args: Named): Promise<unknown> => {
      const { text: lua, sha1 } = textOf(script);
      const [hash, count, ...rest] = evalArguments(sha1, callOf(script, { ...keys, ...args }));
      try {
        return await redis.evalsha(hash, count, ...rest.flat());
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
        return await redis.eval(lua, count, ...rest.flat());
      }
    };
  }

  /** How often the server runs each command during `fn`. */
  async commandsOf(fn: () => Promise<unknown>): Promise<Map<string, number>> {
    await this.redis.config("RESETSTAT");
    await fn();
    const stats = await this.redis.info("commandstats");
    const calls = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)];
    return new Map(calls.map(([, name = "", count]) => [name, Number(count)] as const));
  }

  /** Runs `fn` while the server has no memory left. */
  async outOfMemory<T>(fn: () => Promise<T>): Promise<T> {
    await this.redis.config("SET", "maxmemory", "1");
    try {
      return await fn();
    } finally {
      await this.redis.config("SET", "maxmemory", "0");
    }
  }

  /** A connection that may do everything except publish. */
  async withoutChannels(): Promise<Redis> {
    return this.#as("mute", "+@all", "allkeys", "resetchannels");
  }

  /** A connection that may do everything except this command; with `announce`, except use any channel. */
  async without(command: string): Promise<Redis> {
    if (command === "announce") return await this.withoutChannels();
    return this.#as(`no-${command}`, "+@all", `-${command}`, "allkeys", "allchannels");
  }

  async #as(user: string, ...rules: string[]): Promise<Redis> {
    let connection = this.#users.get(user);
    if (connection === undefined) {
      await this.redis.acl("SETUSER", user, "reset", "on", "nopass", ...rules);
      connection = this.server.connect({ username: user, password: "any" });
      this.#users.set(user, connection);
    }
    return connection;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop();
  }
}

/** The error for a user who lacks a command that the script needs. */
export const FORBIDDEN: RegExp = /NOPERM|no permissions|can't (run|access)/;

/** Matches whole numbers in this range, or those with this fraction. */
function whole(least: number, most: number, fraction = 0): unknown {
  return {
    $$typeof: Symbol.for("jest.asymmetricMatcher"),
    asymmetricMatch: (found: number) => (found - fraction) % 1 === 0 && found >= least && found <= most,
    toAsymmetricMatcher: () => `a number from ${least} to ${most} that ends in ${fraction}`,
  };
}

/** Matches a TTL that was set to `ttl` a short while ago; a negative `ttl` matches itself. */
export function left(ttl: number): unknown {
  if (ttl < 0) return ttl;
  // ioredis reads 2^53-1 as 2^53.
  return whole(Math.max(0, ttl - TOLERANCE + 1), ttl === MOST ? ttl + 1 : ttl);
}

/** Replaces a script's text, if tools/mutate-lua runs these tests. */
type Replace = (script: string) => Pick<AnyScript, "text" | "sha1"> | undefined;

function textOf(script: AnyScript): Pick<AnyScript, "text" | "sha1"> {
  const replace = (globalThis as { holdfastReplacedScript?: Replace }).holdfastReplacedScript;
  return replace?.(script.name) ?? script;
}
