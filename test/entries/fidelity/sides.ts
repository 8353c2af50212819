/** The two servers that play the same cases at the same instant: a real one, and the one in memory. */
import type { Redis } from "ioredis";
import { TestClock } from "../../../src/entries/testing/clock.js";
import { MemoryServer } from "../../../src/entries/testing/memory-server.js";
import { type Reply, ReplyError, Status } from "../../../src/entries/testing/reply.js";
import { MovableClock, type RedisServer, startRedis } from "../../support/index.js";
import type { Case } from "./calls.js";
import type { Command } from "./states.js";
import { CHANNELS } from "./vocabulary.js";

/** The result of a case, as text that can be compared. */
export interface Outcome {
  readonly reply: unknown;
  /** Each key with its type, its milliseconds to live, and its value. */
  readonly keys: Readonly<Record<string, unknown>>;
  /** The published messages. */
  readonly messages: readonly string[];
}

/** A message on a channel of its own, after each case. */
const END = "end of a case";

const READ_ALL = `local states = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local read = { string = { 'GET', key }, hash = { 'HGETALL', key }, list = { 'LRANGE', key, 0, -1 },
    zset = { 'ZRANGE', key, 0, -1, 'WITHSCORES' } }
  states[#states + 1] = { key, kind, redis.call('PTTL', key), redis.call(unpack(read[kind])) }
end
return states`;

export class RealSide implements AsyncDisposable {
  readonly #server: RedisServer;
  readonly #clock: MovableClock;
  readonly #redis: Redis;
  #messages: string[][] = [[]];

  private constructor(server: RedisServer, clock: MovableClock) {
    this.#server = server;
    this.#clock = clock;
    this.#redis = server.connect({ stringNumbers: true });
  }

  static async start(): Promise<RealSide> {
    const clock = await MovableClock.create();
    const side = new RealSide(await startRedis({ clock }), clock);
    await side.#listen();
    return side;
  }

  async #listen(): Promise<void> {
    const subscriber = this.#server.connect();
    const hear = (kind: string) => (channel: Buffer, message: Buffer) => {
      if (String(channel) === END) this.#messages.push([]);
      else this.#messages.at(-1)?.push(`${kind} ${channel.toString("latin1")} ${message.toString("latin1")}`);
    };
    subscriber.on("messageBuffer", hear("publish"));
    subscriber.on("smessageBuffer", hear("spublish"));
    await subscriber.subscribe(END, ...CHANNELS);
    await subscriber.ssubscribe(...CHANNELS);
  }

  async play(cases: readonly Case[], now: number): Promise<Outcome[]> {
    await this.#clock.stopAt(now);
    const pipeline = this.#redis.pipeline();
    const add = ([name = "", ...rest]: Command) =>
      pipeline.callBuffer(name, ...rest.map((word) => Buffer.from(word, "latin1")));
    const lengths = cases.map(({ setUp, command }) => {
      for (const each of [["FLUSHALL"], ...setUp, command, ["EVAL", READ_ALL, "0"], ["PUBLISH", END, ""]])
        add(each);
      return setUp.length + 4;
    });
    const answers = (await pipeline.exec()) ?? [];
    // Wait for it, because the last message comes on another connection.
    while (this.#messages.length <= cases.length) await new Promise((resolve) => setImmediate(resolve));
    const messages = this.#messages.splice(0, cases.length);
    let at = 0;
    return lengths.map((length, i) => {
      at += length;
      const [error, reply] = answers[at - 3] ?? [];
      const states = answers[at - 2]?.[1];
      return {
        reply: error ? told(error) : realReply(reply),
        keys: stateOf(states),
        messages: messages[i] ?? [],
      };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop();
    await this.#clock[Symbol.asyncDispose]();
  }
}

function stateOf(states: unknown): Outcome["keys"] {
  const entries = (realReply(states) as [string, string, string, unknown][]).map(
    ([key, kind, ttl, value]) => [
      key.slice(1),
      [kind.slice(1), ttl, kind === "$hash" ? sortedPairs(value as string[]) : value],
    ],
  );
  return Object.fromEntries(entries);
}

function realReply(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return `$${reply.toString("latin1")}`;
  if (Array.isArray(reply)) return reply.map(realReply);
  if (reply instanceof Error) return told(reply);
  return reply === null ? null : `:${String(reply)}`;
}

/** The error's text without the script's hash, and without Lua's own words, which differ between Lua 5.1 and 5.3. */
function told({ message }: Error): string {
  return `!${message
    .replace(/ script: [\da-f]{40}.*$/s, "")
    .replace(/(user_script:\d+:).*$/s, "$1")
    .replace(/, with args beginning with.*/s, "")}`;
}

/** The pairs, sorted, because Redis keeps the order of fields in small hashes only. */
function sortedPairs(flat: readonly string[]): unknown[] {
  return flat.flatMap((field, i) => (i % 2 === 0 ? [[field, flat[i + 1]].join(" ")] : [])).sort();
}

/** A clock that the test sets. */
class ToldClock extends TestClock {
  at = 0;

  override wall(): number {
    return this.at;
  }
}

export function playInMemory({ setUp, command }: Case, now: number): Outcome {
  const clock = new ToldClock();
  clock.at = now;
  const server = new MemoryServer(clock);
  const messages: string[] = [];
  // In memory, a message arrives at once.
  server.later = (callback) => callback();
  for (const kind of ["publish", "spublish"] as const) {
    for (const channel of CHANNELS) {
      server.subscribe(kind, channel, (...message) => {
        messages.push([kind, ...message].join(" "));
      });
    }
  }
  for (const each of setUp) {
    const reply = answerOf(server, each);
    if (reply instanceof ReplyError && !/^WRONGTYPE/.test(reply.message)) throw reply;
  }
  const reply = memoryReply(answerOf(server, command));
  const [, names] = server.execute(["SCAN", "0", "COUNT", "1000"]) as [string, string[]];
  const keys = Object.fromEntries(names.map((key) => [key, memoryState(server, key)]));
  return { reply, keys, messages };
}

function answerOf(server: MemoryServer, command: Command): Reply {
  try {
    return server.execute(command);
  } catch (error) {
    if (error instanceof ReplyError) return error;
    throw error;
  }
}

const READ: Readonly<Record<string, (key: string) => Command>> = {
  string: (key) => ["GET", key],
  hash: (key) => ["HGETALL", key],
  list: (key) => ["LRANGE", key, "0", "-1"],
  zset: (key) => ["ZRANGE", key, "0", "-1", "WITHSCORES"],
};

function memoryState(server: MemoryServer, key: string): unknown {
  const { text: type } = server.execute(["TYPE", key]) as Status;
  const value = memoryReply(server.execute(READ[type]?.(key) ?? []));
  // As a double, because the other side's number comes from a script.
  const ttl = BigInt(Number(server.execute(["PTTL", key])));
  return [type, `:${ttl}`, type === "hash" ? sortedPairs(value as string[]) : value];
}

function memoryReply(reply: Reply): unknown {
  if (typeof reply === "string") return `$${reply}`;
  if (reply instanceof Status) return `$${reply.text}`;
  if (reply instanceof ReplyError) return told(reply);
  if (reply === null) return null;
  return typeof reply === "object" ? reply.map(memoryReply) : `:${reply}`;
}
