/** One round of a RedLock: all masters at once, each with a time limit, what wins, and what a lost round leaves. */
import { expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { INTERNALS } from "../../src/client-options.js";
import type { LockError } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { script, watch } from "../faults/harness.js";
import { isPresence, PATIENCE, SLACK, until } from "../support/index.js";
import {
  expectNothingLeft,
  heldOn,
  joined,
  LONG,
  NEVER,
  occupy,
  ownScripts,
  Party,
  parked,
  SOON,
  timed,
  useMasters,
  vacate,
} from "./red-helpers.js";

const masters = await useMasters(3);

test("all masters are asked at once: with every answer delayed a take costs one delay", async () => {
  const delay = 2_500;
  await using party = await Party.of(masters, { client: { commandTimeout: 10_000 } });
  await party.warmUp();
  const sent: number[] = [];
  for (const proxy of party.proxies) {
    proxy.delayReplies(delay, script("acquire"));
    proxy.onCommand(({ command }) => {
      if (script("acquire")(command)) sent.push(performance.now());
    });
  }
  const { value: hold, took } = await timed(() => party.lock.lock({ lease: LONG }));
  await joined(hold);
  expect(took).toBeGreaterThanOrEqual(delay - 5);
  expect(took).toBeLessThan(2 * delay - 5);
  expect(sent).toHaveLength(3);
  expect(Math.max(...sent) - Math.min(...sent)).toBeLessThan(delay - 5);
  await hold.unlock();
});

test("a free lock costs each master one command, and so does giving it back", async () => {
  await using party = await Party.of(masters);
  await party.warmUp();
  for (const proxy of party.proxies) proxy.clear();
  await (await party.lock.lock()).unlock();
  await Promise.all(party.redises.map((redis) => redis.ping()));
  for (const proxy of party.proxies) {
    expect(proxy.count(script("acquire", party.name))).toBe(1);
    // Without presence: if a majority answers slowly, a client may publish that it holds a member.
    expect(proxy.count((command) => !isPresence(command))).toBe(3);
  }
});

const TIMES: [what: string, lease: number | undefined, commandTimeout: number, time: number][] = [
  ["50 ms at the least", 2_000, PATIENCE, 50],
  ["a hundredth of the lease", 40_000, PATIENCE, 400],
  ["a hundredth of the watchdog's lease", undefined, PATIENCE, 300],
  ["commandTimeout at the most", 100 * PATIENCE, 200, 200],
];

for (const [what, lease, commandTimeout, time] of TIMES) {
  test(`a silent master is given ${what} for its answer, and no more`, async () => {
    await using party = await Party.of(masters, { client: { commandTimeout, watchdogTimeout: 30_000 } });
    await party.warmUp();
    for (const i of [1, 2]) party.proxy(i).stall();
    const { value: error, took } = await timed(() => failure(party.lock.tryLock(0, lease)));
    expect(error).toMatchObject({ code: "QUORUM" });
    expect(took).toBeGreaterThanOrEqual(time - 5);
    expect(took).toBeLessThan(time + SLACK);
    for (const i of [1, 2]) party.proxy(i).restore();
    await expectNothingLeft(party);
  });
}

test("validity counts from before the first command: what slow members take is off it", async () => {
  await using party = await Party.of(masters);
  await party.warmUp();
  for (const slow of [
    [1, 2],
    [0, 1, 2],
  ]) {
    for (const i of slow) party.proxy(i).delayReplies(250, script("acquire"));
    const hold = await party.lock.lock({ lease: LONG });
    expect(hold.remaining).toBeLessThanOrEqual(0.99 * LONG - 2 - 245);
    expect(hold.remaining).toBeGreaterThan(0.9 * LONG);
    const late = hold.members.filter(({ remaining }) => remaining <= 0.99 * LONG - 2 - 245);
    expect(late).toHaveLength(hold.members.length);
    for (const i of slow) party.proxy(i).restore();
    await hold.unlock();
  }
});

test("a grant without validity is no hold, and is given back everywhere [B113]", async () => {
  let leaps = 0;
  const clock = { ...systemClock, wall: () => Date.now() + leaps * 200_000 };
  await using party = await Party.of(masters, { client: { [INTERNALS]: { clock } } as object });
  await party.warmUp();
  const isTry = script("acquire");
  for (const proxy of party.proxies) {
    proxy.onCommand(({ command }) => {
      if (isTry(command)) leaps++;
    });
  }
  await expect(party.lock.tryLock(0, 100_000)).rejects.toMatchObject({ code: "LOCK_LOST" });
  await expectNothingLeft(party);
  await expect(party.lock.lock({ lease: 100_000, wait: 3_000 })).rejects.toMatchObject({
    code: "WAIT_TIMEOUT",
  });
  expect(party.asked[0]).toBeGreaterThan(2);
  await expectNothingLeft(party);
});

test("validity that ends while the round waits for a majority is none", async () => {
  await using party = await Party.of(masters);
  await party.warmUp();
  party.proxy(2).stall();
  // One master grants at once; the next one grants when the first grant's time is already over.
  party.proxy(1).delayReplies(45, script("acquire"));
  const outcome = await party.lock.tryLock(0, 40).catch(({ code }) => code);
  expect([null, "LOCK_LOST", "QUORUM"]).toContain(outcome);
});

test("grants that come too late are tried for again after a short pause, not after pollCap", async () => {
  await using party = await Party.of(masters, { client: { pollCap: NEVER } });
  await party.warmUp();
  for (const proxy of party.proxies) proxy.delayReplies(30, script("acquire"));
  // The answers come after the lease, but not so late that they count as missing. A slow machine takes a few calls to
  // get there.
  const patience = { timeout: 20_000 };
  const callAgain = () => watch(party.lock.lock({ lease: 25, wait: 1_000 }));
  let call = callAgain();
  let before = party.asked[0] ?? 0;
  const isRejected = () => {
    if (call.state !== "rejected") return false;
    expect(["QUORUM", "UNAVAILABLE", "WAIT_TIMEOUT"]).toContain((call.error as LockError).code);
    before = party.asked[0] ?? 0;
    call = callAgain();
    return true;
  };
  // The second try only follows from the confirmed subscription, so there must be more.
  const hasTriedAgain = () => !isRejected() && (party.asked[0] ?? 0) >= before + 4;
  await until("it has tried again and again", hasTriedAgain, patience);
  expect(call.state).toBe("pending");
  for (const proxy of party.proxies) proxy.restore();
  await until("it is granted", () => !isRejected() && call.state === "resolved", patience);
  await call.value?.unlock().catch(({ code }) => expect(code).toBe("LOCK_LOST"));
});

test("with one master held by another owner the call succeeds; with two it is refused, and its own vote is given back", async () => {
  await using party = await Party.of(masters);
  await occupy(party, [1], LONG);
  const hold = await party.lock.tryLock(0, LONG);
  expect(hold?.members).toHaveLength(2);
  await hold?.unlock();
  await occupy(party, [2], LONG);
  expect(await party.lock.tryLock(0, LONG)).toBeNull();
  // Two refusals decide the round. A later grant by the third master is given back in the background.
  await until("its own vote is given back", async () => (await heldOn(party)).join() === "1,2");
  await expect(party.lock.lock({ wait: 2_500 })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
  await expect(party.lock.tryLock(2_500)).resolves.toBeNull();
  await vacate(party, [1, 2]);
  await expectNothingLeft(party);
});

test("a lost round gives back at once what a master granted without its answer being heard", async () => {
  await using party = await Party.of(masters);
  await party.warmUp();
  await occupy(party, [0, 1], LONG);
  party.proxy(2).delayReplies(NEVER, script("acquire"));
  // If that grant were not given back, the lock would stay taken for its whole lease.
  expect(await party.lock.tryLock(0, LONG)).toBeNull();
  await until("it is given back", async () => !(await heldOn(party)).includes(2));
  await vacate(party, [0, 1]);
  await expectNothingLeft(party);
});

test("a late grant of a silent master is given back, though the call was won without it", async () => {
  await using party = await Party.of(masters);
  await party.warmUp();
  party.proxy(2).stall();
  const hold = await until("it is taken", () => party.lock.tryLock(0, 20_000), { timeout: SOON });
  expect(hold?.members).toHaveLength(2);
  // A master has 200 ms for its answer. Timers fire in order, so that time is over after this one.
  await new Promise((resolve) => setTimeout(resolve, 400));
  party.proxy(2).restore();
  await until("it is given back", async () => (await heldOn(party)).join() === "0,1");
  expect(hold?.members).toHaveLength(2);
  await hold?.unlock();
  await expectNothingLeft(party);
});

test("commands whose replies are lost and that are sent again count once on each master", async () => {
  await using party = await Party.of(masters);
  await party.warmUp();
  const cuts = party.proxies.map((proxy) => proxy.cutReplyOf(ownScripts(party)));
  const hold = await party.lock.lock({ lease: LONG });
  expect(cuts.map(({ hits }) => hits)).toEqual([1, 1, 1]);
  const counts = await Promise.all(masters.map((server) => server.call("HVALS", party.name)));
  const granted = (counts as string[][]).filter((count) => count.length > 0);
  expect(granted.length).toBeGreaterThanOrEqual(2);
  for (const count of granted) expect(count).toEqual(["1"]);
  await until("all are back", () => party.redises.every(({ status }) => status === "ready"));
  const again = party.proxies.map((proxy) => proxy.cutReplyOf(script("release", party.name)));
  await hold.unlock();
  expect(again.filter(({ hits }) => hits > 0).length).toBeGreaterThanOrEqual(2);
  await expectNothingLeft(party);
});

test("a message from one master is no reason to try; those of a majority are", async () => {
  await using party = await Party.of(masters, { client: { pollCap: NEVER } });
  await party.warmUp();
  await occupy(party, [0, 1, 2], LONG);
  const waiter = await parked(party, () => party.lock.lock());
  const asked = party.asked[2] ?? 0;
  // Besides the first try, a late confirmation of another master may cause one more.
  for (let i = 0; i < 6; i++) {
    await vacate(party, [0]);
    await Promise.all(party.redises.map((redis) => redis.ping()));
  }
  await vacate(party, [1]);
  const hold = await waiter.done;
  expect((party.asked[2] ?? 0) - asked).toBeLessThanOrEqual(2);
  expect(hold.members).toHaveLength(2);
  await hold.unlock();
  await vacate(party, [2]);
});

test("an aborted call ends at once and leaves nothing, wherever it is", async () => {
  await using party = await Party.of(masters, { client: { pollCap: NEVER } });
  await party.warmUp();
  const early = new AbortController();
  early.abort(new Error("early"));
  const asked = [...party.asked];
  expect(await failure(party.lock.lock({ signal: early.signal }))).toBe(early.signal.reason);
  expect(party.asked).toEqual(asked);
  const inFlight = new AbortController();
  for (const proxy of party.proxies) proxy.delayReplies(1_000, script("acquire"));
  const call = watch(party.lock.lock({ signal: inFlight.signal, lease: LONG }));
  await until("the masters have it", async () => (await heldOn(party)).length === 3);
  inFlight.abort(new Error("in flight"));
  await expect(call.promise).rejects.toThrow("in flight");
  await expectNothingLeft(party);
  for (const proxy of party.proxies) proxy.restore();
  await occupy(party, [0, 1, 2], LONG);
  const waiting = new AbortController();
  const { done } = await parked(party, () => party.lock.lock({ signal: waiting.signal }));
  waiting.abort(new Error("waiting"));
  await expect(done).rejects.toThrow("waiting");
  await vacate(party, [0, 1, 2]);
  await (await party.lock.lock()).unlock();
  await expectNothingLeft(party);
});
