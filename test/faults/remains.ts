/** What the server has of a bed's lock, and what it may have when all calls are over. */
import { expect } from "vitest";
import { type KeyState, PATIENCE, type RedisServer, until } from "../support/index.js";
import { isMarker } from "../support/key-state.js";
import type { Bed } from "./harness.js";

/** The lock has exactly this owner and count, it has a TTL, and there are no other keys. */
export async function expectHeld(bed: Bed, ownerId: string, count: number): Promise<void> {
  expect(await expectHash(bed, ownerId, count)).toEqual({});
}

/** Checks the keys that make the lock; returns the other keys. */
async function expectHash(bed: Bed, ownerId: string, count: number): Promise<Record<string, KeyState>> {
  const { kind, name } = bed;
  const { [name]: hash, ...rest } = await withoutKept(bed);
  expect(hash).toMatchObject({ type: "hash", ttl: expect.toSatisfy((ttl) => ttl > 0) });
  expect(hash?.value).toEqual(kind.fields(ownerId, count));
  return rest;
}

const isTokenCounter = (key: string): boolean => key.startsWith("redisson_lock_token:");

/** The keys of the lock, without those that stay after the last release. */
async function withoutKept({ keys }: Bed): Promise<Record<string, KeyState>> {
  return Object.fromEntries(Object.entries(await keys()).filter(([key]) => !isTokenCounter(key)));
}

/** The TTL of the lock; -2 if it is gone. */
export async function ttlOf(bed: Bed): Promise<number> {
  return (await bed.keys())[bed.name]?.ttl ?? -2;
}

/** Resolves when a call has left a marker that it is over. */
export async function untilMarked(bed: Bed): Promise<void> {
  await until("there is a marker", async () => Object.keys(await bed.keys()).some(isMarker));
}

/** Resolves when the lock is free on the server. */
function untilFree(bed: Bed, timeout: number = PATIENCE): Promise<unknown> {
  const isFree = async () => Object.keys(await withoutKept(bed)).every(isMarker);
  return until(`${bed.name} is free`, isFree, { timeout });
}

/** Like {@link expectHeld}, but there may also be markers that expire within `longest` ms. */
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

/** The lock is gone, and only markers are left, which expire within `longest` ms. */
export async function expectNothingLeft(bed: Bed, longest = 60_000): Promise<void> {
  expectMarkers(await withoutKept(bed), longest);
}

/** Like {@link expectNothingLeft}, once the work in the background is done, and again after a close. */
export async function expectNothingLeftSoon(bed: Bed, timeout: number = PATIENCE): Promise<void> {
  await untilFree(bed, timeout);
  // A close with time-out 0 does not wait for a server that is away.
  await until("Redis answers", () => bed.own.ping());
  await bed.client.close({ timeout: 0 });
  await until("the last commands have been executed", () => bed.own.status !== "ready");
  await expectNothingLeft(bed);
}

/** The channels of the lock that have a listener. */
export async function channels(server: RedisServer, name: string): Promise<string[]> {
  return (await server.call("PUBSUB", "CHANNELS", `*${name}*`)) as string[];
}

/** The number of listeners of a lock's channels, on the server that is asked. */
export async function listeners(server: RedisServer, name: string): Promise<number> {
  const reply = (await server.call("PUBSUB", "NUMSUB", ...(await channels(server, name)))) as unknown[];
  return reply.reduce<number>((sum, word, i) => sum + (i % 2 ? Number(word) : 0), 0);
}
