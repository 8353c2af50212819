/** Contract section 4: which votes grant a RedLock, and what a call or a question says without a majority. */
import { expect } from "vitest";
import { type QuorumError, RedisUnavailableError, RedLock } from "../../../src/index.js";
import { failure, RED, watch } from "../../support/place/index.js";
import { ANSWER, FIVE, LEASE, type Masters, redRow } from "./masters.js";

type State = "free" | "held" | "silent";

/** The states of `count` masters, whichever of them are in which: each number of free, held and silent ones. */
function statesOf(count: number): State[][] {
  const all: State[][] = [];
  for (let free = 0; free <= count; free++)
    for (let held = 0; held <= count - free; held++)
      all.push([
        ...Array<State>(free).fill("free"),
        ...Array<State>(held).fill("held"),
        ...Array<State>(count - free - held).fill("silent"),
      ]);
  return all;
}

const where = (states: readonly State[], state: State) =>
  states.flatMap((each, i) => (each === state ? [i] : []));

function countsOf(states: readonly State[]): string {
  const [free, held, silent] = (["free", "held", "silent"] as const).map(
    (state) => where(states, state).length,
  );
  return `${free} free, ${held} held and ${silent} silent masters`;
}

for (const kind of [RED, FIVE])
  for (const states of statesOf(kind.servers)) {
    const quorum = Math.floor(kind.servers / 2) + 1;
    const [free, held, silent] = (["free", "held", "silent"] as const).map((state) =>
      where(states, state),
    ) as [number[], number[], number[]];
    const granted = free.length >= quorum;
    const answered = free.length + held.length >= quorum;
    const outcome = granted ? "granted" : answered ? "refused" : "QUORUM";

    redRow(
      `${countsOf(states)} make a first try ${outcome}, and what it does not get is given back [§4 red] [§4 red-quorum] [F39]`,
      async ({ a, red, occupy, vacate, heldOn, pass, settle }) => {
        for (const end of ["first", "last"] as const) {
          occupy(...held);
          a.at(...silent).keep("requests");
          const call = watch(end === "first" ? red.tryLock(0, LEASE) : red.lock({ lease: LEASE, wait: 0 }));
          await pass(ANSWER);
          if (granted) {
            expect(call.value?.isHeld).toBe(true);
            expect(call.value?.members).toHaveLength(free.length);
            await call.value?.unlock();
          } else if (answered) {
            expect(call.outcome).toBe(end === "first" ? null : "WAIT_TIMEOUT");
          } else {
            expect(call.error).toMatchObject({ code: "QUORUM", votes: free.length, lockName: red.name });
            const { errors } = call.error as QuorumError;
            expect(errors.map((error) => (error as { code: string }).code)).toEqual(
              silent.map(() => "UNAVAILABLE"),
            );
          }
          await settle();
          expect(heldOn()).toEqual(held);
          // What a silent master grants late is given back, too.
          await a.letGo();
          await pass(ANSWER);
          expect(heldOn()).toEqual(held);
          vacate(...held);
        }
      },
      {},
      kind,
    );

    const isLocked = held.length >= quorum ? true : free.length > kind.servers - quorum ? false : "QUORUM";
    redRow(
      `${countsOf(states)} answer isLocked with ${isLocked}, and the time only as far as they are sure [§4 group-face] [B6]`,
      async ({ a, red, occupy, vacate, pass }) => {
        occupy(...held);
        a.at(...silent).keep("requests");
        // Twice, because the second time the masters are known to be silent.
        for (let i = 0; i < 2; i++) {
          const [locked, time] = [watch(red.isLocked()), watch(red.remainTimeToLive())];
          await pass(ANSWER);
          expect(locked.outcome).toBe(isLocked);
          if (isLocked === "QUORUM") {
            expect(locked.error).toMatchObject({
              lockName: red.name,
              errors: silent.map(() => expect.anything()),
            });
            expect(time.outcome).toBe("QUORUM");
          } else if (isLocked) expect(time.outcome).toBeGreaterThan(LEASE / 2);
          else expect(time.outcome).toBe(-2);
        }
        await a.letGo();
        vacate(...held);
        await pass(ANSWER);
        expect(await red.isLocked()).toBe(false);
      },
      {},
      kind,
    );
  }

redRow(
  "an owner's questions are answered by what the others agree on, and else reject with QUORUM [§4 group-face] [B6]",
  async ({ a, red, client, occupy, vacate, pass }) => {
    const says = async (owner: { readonly owner: never }) => {
      const asked = [watch(red.isHeldByCurrentOwner(owner)), watch(red.getHoldCount(owner))];
      await pass(ANSWER);
      return asked.map(({ outcome }) => outcome);
    };
    const hold = await red.lock({ lease: LEASE });
    const owner = { owner: hold as never };
    a.at(1).keep("requests");
    expect(await says(owner)).toEqual([true, 1]);
    await a.letGo();
    await hold.unlock();
    occupy(2);
    const some = await red.lock({ lease: LEASE });
    vacate(2);
    const mine = { owner: some as never };
    a.at(1).keep("requests");
    expect(await says(mine)).toEqual(["QUORUM", "QUORUM"]);
    expect(some.isHeld).toBe(true);
    // Nobody has to be asked for an owner without a hold.
    a.keep("requests");
    expect(await red.isHeldByCurrentOwner({ owner: client.newOwner() as never })).toBe(false);
    expect(await red.getHoldCount()).toBe(0);
    await a.letGo();
    expect(await says(mine)).toEqual([true, 1]);
    await some.unlock();
  },
);

const TIMES: readonly [what: string, lease: number | undefined, commandTimeout: number, time: number][] = [
  ["50 ms at the least", 2_000, 3_000, 50],
  ["a hundredth of the lease", 40_000, 3_000, 400],
  ["a hundredth of the watchdog's lease", undefined, 3_000, 300],
  ["commandTimeout at the most", 600_000, 200, 200],
];

for (const [what, lease, commandTimeout, time] of TIMES)
  redRow(
    `a silent master is given ${what} for its answer, and no more [§4 red]`,
    async ({ a, red, pass }) => {
      a.at(1, 2).keep("requests");
      const call = watch(red.tryLock(0, lease));
      await pass(time - 1);
      expect(call.outcome).toBe("pending");
      await pass(1);
      expect(call.outcome).toBe("QUORUM");
      await a.letGo();
    },
    { commandTimeout },
  );

redRow(
  "all masters are asked at once, each by one command, and validity counts from before the first [§4 red] [§2 one-round-trip]",
  async ({ a, red, servers, pass, settle }) => {
    a.keep("replies");
    const call = watch(red.lock({ lease: LEASE }));
    await settle();
    expect(servers.map((server) => server.took().length)).toEqual([1, 1, 1]);
    await pass(250);
    await a.letGo();
    expect(call.value?.members).toHaveLength(3);
    expect(call.value?.remaining).toBe(0.99 * LEASE - 2 - 250);
    await call.value?.unlock();
    expect(servers.map((server) => server.took().length)).toEqual([1, 1, 1]);
  },
);

redRow(
  "grants whose validity is over are no hold: tryLock rejects LOCK_LOST, lock tries again within its wait [§4 red] [B113]",
  async ({ a, red, heldOn, server, pass }) => {
    a.keep("replies");
    const tried = watch(red.tryLock(0, 40));
    // Later than the lease, and in time for an answer.
    await pass(45);
    await a.letGo();
    expect(tried.outcome).toBe("LOCK_LOST");
    expect(heldOn()).toEqual([]);
    server.took();
    a.keep("replies");
    const call = watch(red.lock({ lease: 40, wait: 300 }));
    const due: number[] = [];
    for (let now = 0; call.state === "pending" && now < 400; now++) {
      while (due.length < a.at(0).onTheirWay) due.push(now + 45);
      if ((due[0] ?? now + 1) <= now) {
        due.shift();
        await a.letOneGo();
      }
      await pass(1);
    }
    await a.letGo();
    expect(call.outcome).toBe("WAIT_TIMEOUT");
    expect(server.took().length).toBeGreaterThan(4);
  },
);

redRow(
  "a call ends at once by its abort, wherever it is, and what comes late is given back [§2 signal] [B133]",
  async ({ a, red, occupy, vacate, heldOn, pass, settle, servers }) => {
    const reason = new RedisUnavailableError("of another call");
    const aborted = AbortSignal.abort(reason);
    expect(await failure(red.lock({ signal: aborted }))).toBe(reason);
    expect(servers.map(({ ran }) => ran.length)).toEqual([0, 0, 0]);
    const before: [string, () => void][] = [
      ["requests", () => a.keep("requests")],
      ["replies", () => a.keep("replies")],
      ["others", () => occupy(0, 1, 2)],
      [
        "others, and a majority is away",
        () => {
          occupy(0, 1, 2);
          a.at(1, 2).keep("requests");
        },
      ],
    ];
    for (const [, prepare] of before) {
      prepare();
      const controller = new AbortController();
      const call = watch(red.lock({ lease: LEASE, signal: controller.signal }));
      await settle();
      controller.abort(reason);
      await settle();
      expect(call.error).toBe(reason);
      await a.letGo();
      vacate(...heldOn());
      await pass(ANSWER);
      expect(heldOn()).toEqual([]);
    }
  },
);

/** What a waiting call meets when its wait ends. */
const ENDS: readonly [string, (place: Masters) => unknown, locked: string | null, waited: string][] = [
  ["all masters say that others have it", () => {}, null, "WAIT_TIMEOUT"],
  ["a minority is silent", ({ a }) => a.at(0).keep("requests"), null, "WAIT_TIMEOUT"],
  ["a majority is silent", ({ a }) => a.at(1, 2).keep("requests"), "UNAVAILABLE", "UNAVAILABLE"],
];

for (const [what, act, ofTry, ofLock] of ENDS)
  redRow(
    `a wait that ends while ${what} ends as ${ofTry} and ${ofLock}, and names who was silent [§2 last-try-unanswered] [B78]`,
    async (place) => {
      const { a, red, occupy, vacate, pass } = place;
      occupy(0, 1, 2);
      const calls = [watch(red.tryLock(20_000, LEASE)), watch(red.lock({ wait: 20_000, lease: LEASE }))];
      await pass(100);
      await act(place);
      await pass(20_000);
      expect(calls.map(({ outcome }) => outcome)).toEqual([ofTry, ofLock]);
      for (const { error } of calls)
        if (ofTry === "UNAVAILABLE") {
          const told = (error as QuorumError).errors.map((each) => (each as Error).message);
          expect(told).toEqual([1, 2].map((port) => expect.stringContaining(`:${port} `)));
          expect((error as Error).message).toBe(told[0]);
        }
      await a.letGo();
      vacate(0, 1, 2);
    },
    { pollCap: 200 },
  );

redRow(
  "a message from one master is no reason to try, those of a majority are [§2 woken-by-message]",
  async ({ red, occupy, vacate, pass, servers }) => {
    occupy(0, 1, 2);
    const call = watch(red.lock({ lease: LEASE }));
    await pass(1_000);
    for (const server of servers) server.took();
    vacate(0);
    await pass(1_000);
    vacate(0);
    await pass(1_000);
    expect(servers[2]?.took()).toEqual([]);
    vacate(1);
    await pass(1_000);
    expect(call.value?.members).toHaveLength(2);
    await call.value?.unlock();
    vacate(2);
  },
  { pollCap: 3_600_000 },
);

redRow(
  "a nested call that has lost a round does not stand behind those who wait for its owner [§4 red] [B288]",
  async ({ a, red, occupy, vacate, pass, settle }) => {
    occupy(2);
    const outer = await red.lock();
    const stranger = watch(red.lock());
    await settle();
    // One master refuses it, and one is late: that is no majority.
    a.at(1).keep("requests");
    const nested = watch(red.lock({ owner: outer }));
    await pass(1_000);
    expect(nested.state).toBe("pending");
    await a.letGo();
    await pass(ANSWER);
    expect(nested.value?.isHeld).toBe(true);
    for (const hold of [nested.value, outer]) await hold?.unlock();
    vacate(2);
    await pass(ANSWER);
    await stranger.value?.unlock();
  },
);

redRow(
  "calls for a RedLock over fair locks that wait in one process get it soon one after the other [§4 red] [B310]",
  async ({ a, pass, settle }) => {
    const fair = new RedLock(...a.clients.map((each) => each.getFairLock("fair")));
    const hold = await fair.lock();
    const calls = [1, 2, 3].map(() => watch(fair.lock({ wait: 2_000 })));
    await settle();
    await hold.unlock();
    for (const call of calls) {
      await pass(500);
      expect(call.outcome).not.toBe("pending");
      await call.value?.unlock();
    }
  },
);
