/**
 * A server on which single scripts are tried: what is there before, what a script replies, what is there after, and
 * what was announced. The scripts are those of generated.ts, unless tools/mutate-lua.mjs tests these tests.
 */
import type { Redis } from "ioredis";
import { expect } from "vitest";
import {
  type AnyScript,
  type ArgumentValues,
  encode,
  type KeyValues,
  type Script,
  type ScriptText,
} from "../../src/scripts/script.js";
import {
  allKeys,
  findRedis,
  hasFeaturesOf,
  type KeyState,
  type RedisServer,
  startRedis,
} from "../support/index.js";

export const LOCK = "job";
export const CHANNEL = "redisson_lock__channel:{job}";
const CLIENT = "6e3814a1-e847-452b-a982-45baf93a1df2";
export const ME: string = `${CLIENT}:1`;
export const OTHER: string = `${CLIENT}:2`;
export const TOMBSTONE: string = `redisson_unlock_latch:{job}:${ME}`;
export const MOST: number = Number.MAX_SAFE_INTEGER;

/** How far a TTL may have run down since it was set. */
const TOLERANCE = 8_000;

const isModern = hasFeaturesOf(await findRedis(), "7.0.0");

export type Form = "modern" | "legacy";

/** The texts of a script that differ, as far as this server runs them. */
export function forms(script: { readonly modern: ScriptText; readonly legacy: ScriptText }): Form[] {
  if (!isModern) return ["legacy"];
  return script.modern.text === script.legacy.text ? ["modern"] : ["modern", "legacy"];
}

/** How this server can announce a release. */
export const publishers: Message["command"][] = isModern ? ["PUBLISH", "SPUBLISH"] : ["PUBLISH"];

/** A key as it is to be, or was found; `ttl` -1: without end. */
export interface State {
  readonly value: Exclude<KeyState["value"], unknown[]> | string[] | Scores;
  readonly ttl: number;
}

/** A sorted set of times: ms of the server's clock, counted from the last `put`. */
export class Scores {
  readonly members: Readonly<Record<string, number | Later>>;

  constructor(members: Scores["members"]) {
    this.members = members;
  }
}

/** A time that a script counted from when it ran. */
export interface Later {
  readonly later: number;
}

export function later(ms: number): Later {
  return { later: ms };
}

export function scored(members: Scores["members"], ttl = -1): State {
  return { value: new Scores(members), ttl };
}

/** A lock's hash. */
export function held(value: Record<string, string>, ttl: number): State {
  return { value, ttl };
}

export function text(value: string, ttl: number): State {
  return { value, ttl };
}

export type States = Readonly<Record<string, State>>;

export interface Message {
  readonly command: "PUBLISH" | "SPUBLISH";
  readonly channel: string;
  readonly payload: string;
}

export type Run<K, A> = (keys: K, args: A) => Promise<unknown>;

/** `channels`: where sharded announcements are heard. */
export async function startBench(channels: readonly string[] = [CHANNEL]): Promise<Bench> {
  const server = await startRedis();
  const bench = new Bench(server);
  await bench.subscribe(channels);
  return bench;
}

export class Bench {
  readonly server: RedisServer;
  readonly redis: Redis;
  readonly #subscriber: Redis;
  readonly #users = new Map<string, Redis>();
  #messages: Message[] = [];
  /** The server's clock at the last `put`, in ms. */
  #since = 0;

  constructor(server: RedisServer) {
    this.server = server;
    this.redis = server.connect();
    this.#subscriber = server.connect();
  }

  async subscribe(channels: readonly string[]): Promise<void> {
    const hear = (command: Message["command"]) => (channel: string, payload: string) => {
      this.#messages.push({ command, channel, payload });
    };
    this.#subscriber.on("pmessage", (_pattern: string, channel: string, payload: string) =>
      hear("PUBLISH")(channel, payload),
    );
    this.#subscriber.on("smessage", hear("SPUBLISH"));
    await this.#subscriber.psubscribe("*");
    if (isModern) await this.#subscriber.ssubscribe(...channels);
  }

  /** Puts the server into a state: these keys and no others. */
  async put(states: States): Promise<void> {
    await this.redis.flushall();
    this.#since = await this.#time();
    // Together, so that all TTLs start at almost the same time.
    const together = this.redis.pipeline();
    for (const [key, { value, ttl }] of Object.entries(states)) {
      if (typeof value === "string") together.set(key, value);
      else if (Array.isArray(value)) together.rpush(key, ...value);
      else if (value instanceof Scores) {
        for (const [member, at] of Object.entries(value.members)) {
          together.zadd(key, this.#since + (typeof at === "number" ? at : at.later), member);
        }
      } else if (value !== null) together.hset(key, value);
      if (ttl > 0) together.pexpire(key, ttl);
    }
    await together.exec();
    await this.heard();
  }

  /** The server's clock in ms. */
  async #time(): Promise<number> {
    const [seconds = 0, microseconds = 0] = (await this.redis.time()).map(Number);
    return seconds * 1_000 + Math.floor(microseconds / 1_000);
  }

  /** All keys of the server are as given, in type, value and TTL. */
  async expect(states: States): Promise<void> {
    const found = await allKeys(this.redis);
    const now = await this.#time();
    const seen = Object.fromEntries(
      [...found].map(([key, { type, value }]) => [key, value && this.#timed(type, value)]),
    );
    expect(seen).toEqual(
      Object.fromEntries(Object.entries(states).map(([key, { value }]) => [key, this.#wanted(value, now)])),
    );
    for (const [key, { ttl }] of Object.entries(states)) expectTtl(found.get(key)?.ttl, ttl);
  }

  /** A sorted set's scores become times since the last `put`. */
  #timed(type: KeyState["type"], value: KeyState["value"]): unknown {
    if (type !== "zset") return value;
    const entries = value as [string, number][];
    return Object.fromEntries(entries.map(([member, score]) => [member, score - this.#since]));
  }

  #wanted(value: State["value"], now: number): unknown {
    if (!(value instanceof Scores)) return value;
    const passed = now - this.#since;
    const wanted = ([member, at]: [string, number | Later]): [string, unknown] => [
      member,
      // A script's clock and its view of TTLs may differ by a tick.
      typeof at === "number" ? at : wholeBetween(at.later - 1, at.later + passed + 1),
    ];
    return Object.fromEntries(Object.entries(value.members).map(wanted));
  }

  /** What was announced since the last look. */
  async heard(): Promise<Message[]> {
    // What the server has sent before its answer is there by then.
    await this.#subscriber.ping();
    return this.#messages.splice(0);
  }

  /** The way to run a script: by EVALSHA, and EVAL where the server does not know it. */
  runner<K extends KeyValues, A extends ArgumentValues>(
    script: Script<K, A>,
    form: Form,
    redis: Redis = this.redis,
  ): Run<K, A> {
    return async (keys, args) => {
      const { text: lua, sha1 } = scriptText(script, form);
      const [hash, ...rest] = encode(sha1, script, keys as NoInfer<K>, args as NoInfer<A>);
      try {
        return await redis.evalsha(hash, ...rest);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
        return await redis.eval(lua, ...rest);
      }
    };
  }

  /** While `fn` runs the server has no memory left. */
  async outOfMemory(fn: () => Promise<void>): Promise<void> {
    await this.redis.config("SET", "maxmemory", "1");
    try {
      await fn();
    } finally {
      await this.redis.config("SET", "maxmemory", "0");
    }
  }

  /** A connection that may do everything but announce. */
  async withoutChannels(): Promise<Redis> {
    return this.#as("mute", "+@all", "allkeys", "resetchannels");
  }

  /** A connection that may do everything but this command. */
  async without(command: string): Promise<Redis> {
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

  /** Who lacks the command is told so, and no key is left without end, but those that never have one. */
  async expectRefusal<K extends KeyValues, A extends ArgumentValues>(
    command: string,
    script: Script<K, A>,
    form: Form,
    keys: NoInfer<K>,
    args: NoInfer<A>,
  ): Promise<void> {
    const limited = this.runner(script, form, await this.without(command));
    await expect(limited(keys, args)).rejects.toThrow(FORBIDDEN);
    for (const [key, { ttl }] of await allKeys(this.redis)) {
      if (!ENDLESS.test(key)) expect(ttl).toBeGreaterThan(0);
    }
  }

  async stop(): Promise<void> {
    await this.server.stop();
  }
}

/** Keys that Redisson, too, keeps without TTL: fencing counters, and the queue of a fair lock while somebody waits. */
const ENDLESS = /^redisson_lock_(token|queue|timeout):/;

/** What a user hears who lacks a command that the script needs. */
export const FORBIDDEN: RegExp = /NOPERM|no permissions|can't (run|access)/;

/** Matches whole numbers of this range. */
function wholeBetween(least: number, most: number): unknown {
  return {
    $$typeof: Symbol.for("jest.asymmetricMatcher"),
    asymmetricMatch: (found: number) => Number.isInteger(found) && found >= least && found <= most,
    toAsymmetricMatcher: () => `a whole number from ${least} to ${most}`,
  };
}

/** A TTL that was set to `ttl` a short while ago. */
export function expectTtl(found: unknown, ttl: number): void {
  if (ttl < 0) expect(found).toBe(ttl);
  else {
    // ioredis reads 2^53-1 as 2^53.
    expect(found).toBeLessThanOrEqual(ttl === MOST ? ttl + 1 : ttl);
    expect(found).toBeGreaterThan(ttl - TOLERANCE);
  }
}

/** What tools/mutate-lua puts in the place of a script, if it runs these tests. */
type Replace = (script: string, form: Form) => ScriptText | undefined;

function scriptText(script: AnyScript, form: Form): ScriptText {
  const replace = (globalThis as { holdfastReplacedScript?: Replace }).holdfastReplacedScript;
  return replace?.(script.name, form) ?? script[form];
}
