/**
 * A MultiLock's hold is lost with that of any member: all its properties agree, and the other members are given back.
 */
import { describe, expect, test } from "vitest";
import { type MultiHold, MultiLock } from "../../src/index.js";
import { recordEvents } from "../contract/helpers.js";
import { failsSoon, script, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { Hall, type Place, SOON, useStages } from "./helpers.js";

const stages = await useStages();

interface Loss {
  readonly title: string;
  readonly reason: string;
  /** Options of the client of member `b`. */
  readonly options?: Place;
  readonly lease?: number;
  /** Takes member `b` away from the holder. */
  act(hall: Hall, hold: MultiHold): Promise<unknown> | unknown;
  /** The member is already gone, or can no longer be reached. */
  readonly elsewhere?: boolean;
}

const SHORT = { watchdogTimeout: 4_500 };

const LOSSES: readonly Loss[] = [
  {
    title: "one is taken by force, by the same client",
    reason: "forced",
    act: (hall) => hall.lock(1, "b").forceUnlock(),
  },
  {
    title: "one is taken by force, by another client of the process",
    reason: "forced",
    options: SHORT,
    act: (hall) => hall.lock(2, "b").forceUnlock(),
  },
  {
    title: "one is deleted, and a renewal finds it gone",
    reason: "expired",
    options: SHORT,
    act: (hall) => hall.del(1, "b"),
  },
  {
    title: "one belongs to another, as a renewal finds",
    reason: "taken",
    options: SHORT,
    act: (hall) =>
      hall
        .redis(1)
        .multi()
        .del(hall.name("b"))
        .hset(hall.name("b"), "b0e5b1a2-0000-4000-8000-000000000000:1", "1")
        .pexpire(hall.name("b"), 6_000)
        .exec(),
    elsewhere: true,
  },
  {
    title: "the server of one gives no answer until its deadline",
    reason: "unreachable",
    options: { ...SHORT, commandTimeout: 1_500 },
    act: (hall) => hall.bed(1).proxy.blackhole(),
    elsewhere: true,
  },
  { title: "its lease is over", reason: "expired", lease: 3_000, act: () => {} },
  {
    title: "the lease of one is over",
    reason: "expired",
    lease: 60_000,
    act: (_, { members }) => members[1]?.extend(1_000),
  },
  {
    title: "one's client is closed",
    reason: "closed",
    act: (hall) => hall.client(1).close({ timeout: 0 }),
  },
];

/** Members `a` and `c` of one client, `b` of another one on another server. */
async function open(options: Place = {}): Promise<[Hall, MultiLock]> {
  const hall = await Hall.of(stages, {}, { ...options, server: 1 }, { server: 1 });
  return [hall, new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"), hall.lock(0, "c"))];
}

describe.concurrent.each(LOSSES)("$title", ({ reason, options, lease, act, elsewhere = false }) => {
  test("signal, isHeld and unlock agree, and the others are given back at once", async () => {
    const [hall, multi] = await open(options);
    await using _ = hall;
    const events = [0, 1].map((i) => recordEvents(hall.client(i)));
    const hold = await multi.lock({ lease });
    const gone = { code: "LOCK_LOST", lockName: multi.name, reason };
    await act(hall, hold);
    await until("the signal", () => hold.signal.aborted, { timeout: SOON });
    expect(hold.signal.reason).toMatchObject(gone);
    expect(hold.isHeld).toBe(false);
    expect(hold.remaining).toBe(0);
    expect(hold.members.map(({ isHeld }) => isHeld)).toEqual([false, false, false]);
    // Leases that end together: one ends first, and then the other members may be given back before theirs end.
    const losses = hold.members.flatMap(({ signal }) => (signal.aborted ? [signal.reason] : []));
    expect(losses).toContainEqual(expect.objectContaining({ code: "LOCK_LOST", reason }));
    await until("the others are given back", async () => {
      const held = await hall.held();
      return !held.includes("a") && !held.includes("c");
    });
    hall.bed(1).proxy.restore();
    await hall.lock(0, "a").run(() => {});
    for (const seen of events) {
      const lost = seen.filter(({ name, payload }) => name === "lost" && payload.kind === "multi");
      expect(lost).toHaveLength(1);
      expect(lost[0]?.payload).toMatchObject({ lockName: multi.name, reason, ownerId: hold.ownerId });
    }
    expect(() => hold.assertHeld()).toThrow(expect.objectContaining(gone));
    await expect(hold.extend(10_000)).rejects.toMatchObject(gone);
    // For a close the signal is enough, so unlock() does not reject.
    if (reason === "closed") await hold.unlock();
    else await expect(hold.unlock()).rejects.toMatchObject(gone);
    if (!elsewhere) await hall.expectNothingLeft();
    expect(events.flat().filter(({ name }) => name === "released")).not.toContainEqual(
      expect.objectContaining({ payload: expect.objectContaining({ kind: "multi" }) }),
    );
  });
});

test("a member that is lost before the last one is granted: LOCK_LOST, and nothing is held", async () => {
  const [hall, multi] = await open();
  await using _ = hall;
  await multi.run(() => {});
  hall.bed(1).proxy.delayReplies(800, script("acquire"));
  const call = watch(multi.lock());
  await until("all are held on the server", async () => (await hall.held()).join() === "a,b,c");
  await hall.lock(0, "a").forceUnlock();
  expect(await failsSoon(call)).toMatchObject({ code: "LOCK_LOST", lockName: multi.name, reason: "forced" });
  await hall.expectNothingLeft();
});

test("nested holds: the loss of the outer one's member takes the inner one's too", async () => {
  const [hall, multi] = await open();
  await using _ = hall;
  const outer = await multi.lock();
  const inner = await multi.lock({ owner: outer });
  const single = await hall.lock(0, "a").lock({ owner: outer });
  await hall.lock(1, "b").forceUnlock();
  expect([outer.isHeld, inner.isHeld, single.isHeld]).toEqual([false, false, true]);
  await single.unlock();
  for (const hold of [outer, inner]) await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  await hall.expectNothingLeft();
});
