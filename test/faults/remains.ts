/** What is on the server of a bed's lock, and what may be there when all is over. */
import { expect } from "vitest";
import { isMarker } from "../contract/wire.js";
import { type KeyState, PATIENCE, type RedisServer, until } from "../support/index.js";
import type { Bed } from "./harness.js";

/** The lock is there with exactly this owner and count, it lapses by itself, and there is nothing besides. */
export async function expectHeld(bed: Bed, ownerId: string, count: number): Promise<void> {
  expect(await expectHash(bed, ownerId, count)).toEqual({});
}

/** Looks at the keys that make the lock; gives the others. */
async function expectHash(bed: Bed, ownerId: string, count: number): Promise<Record<string, KeyState>> {
  const { kind, name } = bed;
  const { [name]: hash, ...rest } = await withoutKept(bed);
  expect(hash).toMatchObject({ type: "hash", ttl: expect.toSatisfy((ttl) => ttl > 0) });
  expect(hash?.value).toEqual(kind.fields(ownerId, count));
  for (const key of kind.beside(name, ownerId, count)) {
    expect(rest[key], key).toMatchObject({ ttl: expect.toSatisfy((ttl) => ttl > 0) });
    delete rest[key];
  }
  return rest;
}

/** The keys of the lock but for those that stay when nobody holds it. */
async function withoutKept({ keys, kind }: Bed): Promise<Record<string, KeyState>> {
  return Object.fromEntries(Object.entries(await keys()).filter(([key]) => !kind.keeps(key)));
}

/** The TTL of the lock; -2 if it is gone. */
export async function ttlOf(bed: Bed): Promise<number> {
  return (await bed.keys())[bed.name]?.ttl ?? -2;
}

/** Resolves when a call has left word that it is over. */
export async function untilMarked(bed: Bed): Promise<void> {
  await until("there is a marker", async () => Object.keys(await bed.keys()).some(isMarker));
}

/** Resolves when nobody holds the lock by the word of the server. */
export function untilFree(bed: Bed, timeout: number = PATIENCE): Promise<unknown> {
  const isFree = async () => Object.keys(await withoutKept(bed)).every(isMarker);
  return until(`${bed.name} is free`, isFree, { timeout });
}

/** As {@link expectHeld}, but markers that lapse within `longest` ms may be there too. */
export async function expectHeldBesidesMarkers(
  bed: Bed,
  ownerId: string,
  count: number,
  longest = 60_000,
): Promise<void> {
  expectMarkers(await expectHash(bed, ownerId, count), longest);
}

function expectMarkers(keys: Record<string, KeyState>, longest: number): void {
  expect(Object.keys(keys).filter((key) => !isMarker(key))).toEqual([]);
  for (const [key, { ttl }] of Object.entries(keys)) {
    expect(ttl, key).toBeGreaterThan(0);
    expect(ttl, key).toBeLessThanOrEqual(longest);
  }
}

/** The lock is gone, and what is left of it are markers that lapse within `longest` ms. */
export async function expectNothingLeft(bed: Bed, longest = 60_000): Promise<void> {
  expectMarkers(await withoutKept(bed), longest);
}

/** As {@link expectNothingLeft}, as soon as what goes on in the background is done, and still after a close. */
export async function expectNothingLeftSoon(bed: Bed, timeout: number = PATIENCE): Promise<void> {
  await untilFree(bed, timeout);
  // A close that ends all at once does not wait for a server that is away.
  await until("Redis answers", () => bed.redis.ping());
  await bed.client.close({ timeout: 0 });
  await until("Redis answers", () => bed.redis.ping()); // what stood in the client's queues has been executed
  await expectNothingLeft(bed);
}

/** The channels of a lock that somebody listens to. */
export async function channels(server: RedisServer, name: string): Promise<string[]> {
  return (await server.call("PUBSUB", "CHANNELS", `*${name}*`)) as string[];
}

/** How many listen to a lock's channels on the server of this call. */
export async function listeners(server: RedisServer, name: string): Promise<number> {
  const reply = (await server.call("PUBSUB", "NUMSUB", ...(await channels(server, name)))) as unknown[];
  return reply.reduce<number>((sum, word, i) => sum + (i % 2 ? Number(word) : 0), 0);
}
