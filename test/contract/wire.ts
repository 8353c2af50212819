/** The server's view of one lock of any kind, and changes that a test makes to the lock there. */
import type { Redis } from "ioredis";
import { type EvalClient, until } from "../support/index.js";
import type { Kind } from "./kinds.js";

/** True for traces of ended calls, such as tombstones; they expire by themselves and exclude no owner. */
export const isMarker = (key: string): boolean => /^(redisson_unlock_latch|holdfast_over):/.test(key);

/** Deletes the lock and gives it to another owner in one step, so that no renewal comes in between. */
const SEIZE = `
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`;

/** The wire id of an owner in another process. */
export const SOMEBODY = "b0e5b1a2-0000-4000-8000-000000000000:17";

/** Gives another owner a hold that excludes this lock. Returns the hash, which must stay unchanged from now on. */
export async function seize(
  redis: EvalClient,
  { rival }: Kind,
  lockName: string,
  ttl = 30_000,
): Promise<Record<string, string>> {
  const theirs = rival.fields(SOMEBODY, 1);
  await redis.eval(SEIZE, 1, lockName, String(ttl), ...Object.entries(theirs).flat());
  return theirs;
}

export class Wire {
  readonly #redis: Redis;
  readonly #kind: Kind;
  readonly #name: string;

  constructor(redis: Redis, kind: Kind, lockName: string) {
    this.#redis = redis;
    this.#kind = kind;
    this.#name = lockName;
  }

  /** The keys that make the lock held or awaited. */
  async keys(): Promise<string[]> {
    const keys = await this.#redis.keys(`*${this.#name}*`);
    return keys.filter((key) => !isMarker(key) && !this.#kind.keeps(key)).sort();
  }

  async isHeld(): Promise<boolean> {
    return (await this.#redis.exists(this.#name)) === 1;
  }

  untilFree(): Promise<unknown> {
    return until(`${this.#name} is free`, async () => (await this.keys()).length === 0);
  }

  /** The lock's hash. */
  fields(): Promise<Record<string, string>> {
    return this.#redis.hgetall(this.#name);
  }

  /** The lock's hash while only this owner holds it. */
  heldBy(ownerId: string, count = 1): Record<string, string> {
    return this.#kind.fields(ownerId, count);
  }

  /** The number of holds on the server, over all owners. */
  async count(): Promise<number> {
    const { mode: _, ...counts } = await this.fields();
    return Object.values(counts).reduce((sum, count) => sum + Number(count), 0);
  }

  ttl(): Promise<number> {
    return this.#redis.pttl(this.#name);
  }

  /** Deletes the lock, as FLUSHALL would. */
  async wipe(): Promise<void> {
    const keys = await this.keys();
    if (keys.length > 0) await this.#redis.del(keys);
  }

  /** Gives another owner a hold that excludes this lock. Returns the hash, which must stay unchanged from now on. */
  seize(): Promise<Record<string, string>> {
    return seize(this.#redis, this.#kind, this.#name);
  }

  /** Gives another owner the lock, which must be free. */
  async occupy(count = 1): Promise<void> {
    await this.#redis.hset(this.#name, this.#kind.fields(SOMEBODY, count));
    await this.#redis.pexpire(this.#name, 30_000);
    for (const key of this.#kind.beside(this.#name, SOMEBODY, count))
      await this.#redis.set(key, 1, "PX", 30_000);
  }

  /** The channels of the lock that have a listener. */
  async channels(): Promise<string[]> {
    return (await this.#redis.pubsub("CHANNELS", `*${this.#name}*`)) as string[];
  }
}
