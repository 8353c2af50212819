/** What RedLock does not promise: a master that restarts empty within a lease has forgotten its vote, and votes again. */
import { expect, test } from "vitest";
import type { MultiHold } from "../../src/index.js";
import { type RedisServer, until } from "../support/index.js";
import { expectNothingLeft, LONG, Party, SOON, useMasters } from "./red-helpers.js";

const forgetful = useMasters(3);
const faithful = useMasters(3, ["--appendonly", "yes", "--appendfsync", "always"]);

/** One holds masters 0 and 1; master 1 restarts at once; another, who reaches masters 1 and 2, asks for the lock. */
async function restartWithinLease(
  servers: readonly RedisServer[],
  then: (first: MultiHold, second: MultiHold | null, party: Party) => Promise<void>,
): Promise<void> {
  await using one = await Party.of(servers, { client: { commandTimeout: 3_000 } });
  await using two = await Party.of(servers, { name: one.name, client: { commandTimeout: 3_000 } });
  await one.warmUp();
  one.proxy(2).blackhole();
  const first = await one.lock.lock({ lease: LONG });
  expect(first.members).toHaveLength(2);
  await servers[1]?.restart();
  await until("it is back", () => two.redises.every(({ status }) => status === "ready"), { timeout: SOON });
  const second = await two.lock.tryLock(0, LONG);
  await then(first, second, one);
  await second?.unlock();
  one.proxy(2).restore();
}

test("a master of the majority that restarts empty within the lease lets a second holder in", async () => {
  await restartWithinLease(forgetful(), async (first, second) => {
    expect(second?.members).toHaveLength(2);
    // Both believe in it until the first one's next command: only the tokens of fenced members tell them apart.
    expect([first.isHeld, second?.isHeld]).toEqual([true, true]);
    await expect(first.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(second?.isHeld).toBe(true);
  });
});

test("one that remembers does not: with every write synced to disk the second is refused", async () => {
  await restartWithinLease(faithful(), async (first, second, party) => {
    expect(second).toBeNull();
    expect(first.isHeld).toBe(true);
    await first.unlock();
    await expectNothingLeft(party);
  });
});

test("nor does one that comes back only after the lease", async () => {
  const servers = forgetful();
  await using one = await Party.of(servers, { client: { commandTimeout: 3_000 } });
  await using two = await Party.of(servers, { name: one.name, client: { commandTimeout: 3_000 } });
  await one.warmUp();
  one.proxy(2).blackhole();
  const first = await until("it is taken", () => one.lock.lock({ lease: 6_000 }));
  await servers[1]?.kill();
  expect(await two.lock.tryLock(0, LONG)).toBeNull();
  const second = two.lock.lock({ lease: LONG });
  await until("the first one's lease is over", () => !first.isHeld);
  await servers[1]?.restart();
  expect((await second).isHeld).toBe(true);
  await (await second).unlock();
  await expect(first.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});
