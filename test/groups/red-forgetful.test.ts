/**
 * What RedLock cannot promise if a master restarts empty within a lease (test/faults/not-guaranteed), it promises for masters
 * that restart otherwise.
 */
import { expect, test } from "vitest";
import { until } from "../support/index.js";
import { expectNothingLeft, LONG, Party, SOON, useMasters } from "./red-helpers.js";

const forgetful = await useMasters(3);
const faithful = await useMasters(3, ["--appendonly", "yes", "--appendfsync", "always"]);

test("one that remembers does not: with every write synced to disk the second is refused [F40]", async () => {
  await using one = await Party.of(faithful, { client: { commandTimeout: 3_000 } });
  await using two = await Party.of(faithful, { name: one.name, client: { commandTimeout: 3_000 } });
  await one.warmUp();
  one.proxy(2).blackhole();
  const first = await one.lock.lock({ lease: LONG });
  expect(first.members).toHaveLength(2);
  await faithful[1]?.restart();
  await until("it is back", () => two.redises.every(({ status }) => status === "ready"), { timeout: SOON });
  expect(await two.lock.tryLock(0, LONG)).toBeNull();
  expect(first.isHeld).toBe(true);
  await first.unlock();
  await expectNothingLeft(one);
  one.proxy(2).restore();
});

test("nor does one that comes back only after the lease", async () => {
  const servers = forgetful;
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
