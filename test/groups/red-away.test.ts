/** Masters that are killed, stopped, slow, out of reach or empty: a minority costs little, a majority is an error. */
import { expect, test } from "vitest";
import { type QuorumError, RedisUnavailableError } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { script, soon, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import {
  expectNothingLeft,
  heldOn,
  joined,
  LONG,
  NEVER,
  occupy,
  Party,
  parked,
  SOON,
  takeAll,
  timed,
  useMasters,
  vacate,
} from "./red-helpers.js";

const masters = await useMasters(3);

/** Milliseconds that a master has for its answer; a process may stand still that long. */
const TIME = 3_000;
const IMPATIENT = { commandTimeout: TIME };
/** Milliseconds, less than {@link TIME}. */
const QUICK = 2_000;
/** Milliseconds. The lease is so long that a master has all of {@link TIME} for its answer. */
const LEASE = 100 * TIME;

interface Harm {
  readonly what: string;
  readonly harm: (party: Party, i: number) => Promise<void>;
}

const HARMS: readonly Harm[] = [
  {
    what: "killed",
    harm: async (party, i) => {
      await party.servers[i]?.kill();
      await until("that is known", () => party.redises[i]?.status !== "ready");
    },
  },
  { what: "stopped", harm: async (party, i) => party.servers[i]?.pause() },
  { what: "unreachable", harm: async (party, i) => party.proxy(i).blackhole() },
];

test("aborted with an UNAVAILABLE of the caller's own while a majority is away, a call rejects with that [B133]", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  await party.warmUp();
  await occupy(party, [0, 1, 2], LONG);
  const controller = new AbortController();
  const { done } = await parked(party, () => party.lock.lock({ signal: controller.signal }));
  for (const i of [1, 2]) {
    party.proxy(i).refuse();
    await until("that is known", () => party.redises[i]?.status !== "ready");
  }
  const reason = new RedisUnavailableError("of another call");
  controller.abort(reason);
  expect(await failure(done)).toBe(reason);
  for (const i of [1, 2]) party.proxy(i).restore();
  await vacate(party, [0, 1, 2]);
  await expectNothingLeft(party);
});

for (const { what, harm } of HARMS) {
  test(`a minority that is ${what} is waited for once at most, and nothing piles up for it [F39]`, async () => {
    await using party = await Party.of(masters, { client: IMPATIENT });
    await party.warmUp();
    await harm(party, 1);
    const first = await timed(() => party.lock.lock({ lease: LEASE }));
    expect(first.value.members).toHaveLength(2);
    expect(first.took).toBeLessThan(TIME + QUICK);
    await first.value.unlock();
    const took: number[] = [];
    for (let i = 0; i < 50; i++) {
      const next = await timed(() => party.make().lock({ lease: LEASE }));
      took.push(next.took);
      await next.value.unlock();
    }
    expect(took.sort((a, b) => a - b)[25]).toBeLessThan(QUICK);
    const waiting = party.redises[1] as unknown as Record<
      "offlineQueue" | "commandQueue",
      { length: number }
    >;
    expect(waiting.offlineQueue.length + waiting.commandQueue.length).toBeLessThan(20);
    expect(await timed(() => party.lock.isLocked())).toMatchObject({ value: false });
    expect((await timed(() => party.lock.isLocked())).took).toBeLessThan(QUICK);
  });

  test(`with a majority ${what} the first round says QUORUM, and gives its one vote back`, async () => {
    await using party = await Party.of(masters, { client: IMPATIENT });
    await party.warmUp();
    await harm(party, 0);
    await harm(party, 2);
    const calls = [() => party.lock.tryLock(0, LONG), () => party.lock.lock({ lease: LONG, wait: SOON })];
    for (const call of calls) {
      const { value: error, took } = await timed(() => failure(call()));
      expect(error).toMatchObject({ code: "QUORUM", lockName: party.lock.name, votes: 1 });
      expect((error as QuorumError).errors.map((each) => (each as { code: string }).code)).toEqual([
        "UNAVAILABLE",
        "UNAVAILABLE",
      ]);
      // First the time until the connections count as gone, then the time for the answers.
      expect(took).toBeLessThan(2 * TIME + QUICK);
      await until("the vote is given back", async () => (await masters[1]?.call("EXISTS", party.name)) === 0);
    }
    expect(await failure(party.lock.isLocked())).toMatchObject({ code: "QUORUM" });
  });
}

test("a member whose connection never gets ready is waited for once, and listened to by few", async () => {
  await using party = await Party.of(masters, { cold: true });
  party.proxy(2).blackhole();
  await (await party.lock.lock({ lease: LEASE })).unlock();
  const took: number[] = [];
  for (let i = 0; i < 20; i++) {
    const next = await timed(() => party.make().lock({ lease: LEASE }));
    took.push(next.took);
    await next.value.unlock();
  }
  expect(party.redises[2]?.status).toBe("connect");
  expect(took.sort((a, b) => a - b)[10]).toBeLessThan(QUICK);
  expect(party.redises[2]?.listenerCount("ready")).toBeLessThan(10);
});

test("a slow master is waited for by nobody: it joins, or is given back if its answer takes too long", async () => {
  await using party = await Party.of(masters);
  await party.warmUp();
  party.proxy(0).delayReplies(NEVER, script("acquire"));
  const all = await party.lock.lock({ lease: LONG });
  expect(all.members).toHaveLength(2);
  party.proxy(0).restore();
  await joined(all);
  await all.unlock();
  party.proxy(0).restore();
  party.proxy(0).delayReplies(2 * TIME, script("acquire"));
  const { value: hold, took } = await timed(() => party.lock.lock({ lease: LEASE }));
  expect(hold.members).toHaveLength(2);
  expect(took).toBeLessThan(2 * TIME - 100);
  await until("the third is given back", async () => (await heldOn(party)).join() === "1,2");
  await hold.unlock();
  await expectNothingLeft(party);
});

test("a master that has restarted empty votes again", async () => {
  await using party = await Party.of(masters);
  await party.warmUp();
  await masters[2]?.restart();
  await until("it is back", () => party.redises[2]?.status === "ready");
  await (await takeAll(party, LONG)).unlock();
});

test("with a minority away, waiters are woken by the others", async () => {
  await using party = await Party.of(masters, { client: { pollCap: NEVER, ...IMPATIENT } });
  await using other = await Party.of(masters, { name: party.name, client: IMPATIENT });
  const hold = await other.lock.lock({ lease: LONG });
  const waiter = await parked(party, () => party.lock.lock({ lease: LONG }));
  await masters[0]?.kill();
  await hold.unlock();
  const next = await waiter.done;
  expect(next.members).toHaveLength(2);
  await next.unlock();
});

test("a waiting call lives through the loss of a majority, and is granted when that is back", async () => {
  for (const way of ["stopped", "killed"] as const) {
    await using party = await Party.of(masters, { client: { pollCap: 300, ...IMPATIENT } });
    await occupy(party, [0, 1, 2], LONG);
    const waiter = await parked(party, () => party.lock.lock({ lease: 60_000 }));
    const call = watch(waiter.done);
    const asked = [...party.asked];
    for (const i of [0, 1]) {
      if (way === "stopped") masters[i]?.pause();
      else await masters[i]?.kill();
    }
    await until("it has tried in vain", () => (party.asked[2] ?? 0) >= (asked[2] ?? 0) + 2);
    expect(call.state).toBe("pending");
    for (const i of [0, 1]) {
      if (way === "stopped") masters[i]?.resume();
      else await masters[i]?.restart();
    }
    // Killed masters come back empty, so a key on them may already be the waiting call's own.
    await vacate(party, way === "killed" ? [2] : [0, 1, 2]);
    const hold = await soon(call);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
    await expectNothingLeft(party);
  }
});

test("a wait that ends while a majority is away is UNAVAILABLE; one that ends while others hold it is not [B78]", async () => {
  // A master counts as away after it was silent for a tenth of commandTimeout.
  const client = { pollCap: 200, commandTimeout: 20_000 };
  await using party = await Party.of(masters, { client });
  await occupy(party, [0, 1, 2], LONG);
  expect(await party.lock.tryLock(2_500, LEASE)).toBeNull();
  await expect(party.lock.lock({ wait: 2_500 })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
  const minority = await parked(party, () => party.lock.tryLock(4_000, LEASE));
  party.proxy(0).stall();
  expect(await minority.done).toBeNull();
  party.proxy(0).restore();
  await party.redises[0]?.ping();
  const first = await parked(party, () => party.lock.tryLock(8_000, LEASE));
  const second = watch(party.lock.lock({ wait: 8_000, lease: LEASE }));
  const away = [1, 2];
  for (const i of away) party.proxy(i).stall();
  for (const done of [first.done, second.promise]) {
    const error = await failure(done);
    expect(error).toMatchObject({ code: "UNAVAILABLE", lockName: party.lock.name });
    // The error names those two masters, because they gave no answer.
    const told = (error as QuorumError).errors.map((each) => (each as Error).message);
    expect(told).toEqual(away.map((i) => expect.stringContaining(`:${party.proxy(i).port} gave no answer`)));
    expect(error.message).toBe(told[0]);
  }
  for (const i of away) party.proxy(i).restore();
  await vacate(party, [0, 1, 2]);
  await expectNothingLeft(party);
});
