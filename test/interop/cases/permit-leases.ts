/** Permits with a lease as they stand in Redis, read past both sides; and the error for an id that no permit has. */
import type { Redis } from "ioredis";
import { expect } from "vitest";
import { isLockError } from "../../../src/index.js";
import { until } from "../../support/index.js";
import type { AnyPermits, Side } from "./sides.js";

const keyOf = (name: string) => (name.includes("{") ? `${name}:timeout` : `{${name}}:timeout`);

/** The end of each permit's lease, by the id that users see. Fails unless ids stand in Redis as 16 bytes. */
export async function leases(redis: Redis, name: string): Promise<Map<string, number>> {
  const flat = await redis.zrangeBuffer(keyOf(name), "0", "-1", "WITHSCORES");
  const found = new Map<string, number>();
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const member = flat[i] as Buffer;
    expect(member).toHaveLength(16);
    found.set(member.toString("hex"), Number(flat[i + 1]));
  }
  return found;
}

/** Resolves when the lease is over by the server's clock, even if no client has noticed. */
export async function untilLapsed(redis: Redis, name: string, id: string): Promise<void> {
  const ends = (await leases(redis, name)).get(id) ?? 0;
  await until(`the lease of ${id} is over`, async () => {
    const [seconds, micros] = (await redis.time()) as [number, number];
    return Number(seconds) * 1_000 + Number(micros) / 1_000 > ends + 1;
  });
}

/** The release gives nothing back and fails, as Java or Node reports it. */
export async function expectUnknown(side: Side, permits: AnyPermits, id: string): Promise<void> {
  const error: unknown = await permits.release(id).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (side === "Node") expect(isLockError(error, "NOT_OWNER")).toBe(true);
  // Redisson's IllegalArgumentException is wrapped.
  else expect(error).toMatchObject({ name: "JavaError", javaClass: "org.redisson.client.RedisException" });
}
