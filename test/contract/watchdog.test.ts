/** How the watchdog renews: when, how many in one command, and what comes of an answer that is missing, late or refused. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Hold } from "../../src/index.js";
import { Party, type Ran, VirtualServer } from "../support/place/virtual.js";

/** The default lease; it is renewed every third of it, and what is due within a twelfth goes along. */
const LEASE = 30_000;
const DUE = LEASE / 3;
const COMMAND_TIMEOUT = 3_000;

let server: VirtualServer;
let party: Party;
beforeEach(() => {
  server = new VirtualServer();
  party = new Party([server]).listen("renewed", "suspended", "lost");
});
afterEach(() => party.close({ timeout: 0 }));

const lock = (name: string, lease?: number): Promise<Hold> =>
  party.client.getLock(name).lock(lease ? { lease } : {});
const lockAll = (names: readonly string[]): Promise<Hold[]> => Promise.all(names.map((name) => lock(name)));
const numbered = (count: number, name = (i: number) => `job ${i}`): string[] =>
  Array.from({ length: count }, (_, i) => name(i));

/** The names of the locks in each renewal since the last call of this. */
const renewals = (): string[][] =>
  server.ran
    .splice(0)
    .filter(({ name }) => name.endsWith("/keep"))
    .map(({ args: [count, ...args] }) =>
      args.slice(0, Number(count)).filter((key) => !key.includes("rwlock_timeout")),
    );
const isRenewal = ({ name, args }: Ran, key: string) => name === "plain/keep" && args.includes(key);
const told = (name: "renewed" | "suspended" | "lost"): string[] =>
  party.heard(name).map(({ lockName }) => lockName);

describe("renewals of many holds", () => {
  test("go 100 to a command, and every hold is renewed by one of them", async () => {
    const holds = await lockAll(numbered(250));
    await server.advance(DUE);
    const sent = renewals();
    expect(sent.map((names) => names.length)).toEqual([100, 100, 50]);
    expect(new Set(sent.flat())).toEqual(new Set(numbered(250)));
    for (const { isHeld, remaining } of holds) expect(isHeld && remaining > LEASE - DUE).toBe(true);
    for (const name of numbered(250)) expect(server.ttl(name)).toBe(LEASE);
  });

  test("do not share a command if their slots differ on a cluster", async () => {
    await party.close();
    party = new Party([server], {}, { isCluster: true, slots: [], nodes: () => [] });
    await lockAll(numbered(300, (i) => `{${i % 2}}:${i}`));
    await server.advance(DUE);
    const sent = renewals();
    expect(sent.map((names) => names.length).sort((a, b) => a - b)).toEqual([50, 50, 100, 100]);
    for (const names of sent) expect(new Set(names.map((name) => name.slice(0, 3))).size).toBe(1);
  });

  test("do not share a command if their kinds differ", async () => {
    await lockAll(["a", "b"]);
    await party.client.getReadWriteLock("c").readLock().lock();
    await server.advance(DUE);
    expect(renewals().map(([first]) => first)).toEqual(["a", "c"]);
  });

  test("that are due soon after the first go along, and later ones have a command of their own", async () => {
    await lock("first");
    await server.advance(2_000);
    await lock("along");
    await server.advance(2_000);
    await lock("later");
    await server.advance(DUE - 4_000);
    expect(renewals()).toEqual([["first", "along"]]);
    await server.advance(4_000);
    expect(renewals()).toEqual([["later"]]);
  });

  test("need one timer, which is gone with the last hold", async () => {
    const first = await lock("first");
    const timers = server.clock.timers;
    const holds = await lockAll(numbered(50));
    expect(server.clock.timers).toBe(timers);
    await Promise.all([first, ...holds].map((hold) => hold.unlock()));
    await server.advance(LEASE);
    expect(renewals()).toEqual([]);
    expect(server.clock.timers).toBe(0);
  });
});

describe("a hold", () => {
  test("that the answer to a renewal says nothing of is lost, and its neighbours are not", async () => {
    await lockAll(["a", "b"]);
    server.instead = ({ name }) => (name === "plain/keep" ? [1] : undefined);
    await server.advance(DUE);
    expect([told("renewed"), told("lost")]).toEqual([["a"], ["b"]]);
  });

  test("ends at its own deadline, whatever comes, goes and is given back around it", async () => {
    const leases = fc.array(fc.tuple(fc.integer({ min: 1_000, max: 9_000 }), fc.boolean()), {
      maxLength: 40,
    });
    await fc.assert(
      fc.asyncProperty(leases, async (all) => {
        const place = new VirtualServer();
        const { client } = new Party([place]);
        const ended = new Map<string, number>();
        client.on("lost", ({ lockName }) => void ended.set(lockName, place.clock.mono()));
        const due = new Map<string, number>();
        for (const [i, [lease, isGivenBack]] of all.entries()) {
          const hold = await client.getLock(`${i}`).lock({ lease });
          if (isGivenBack) place.later(() => void hold.unlock());
          else due.set(`${i}`, place.clock.mono() + hold.remaining);
          await place.advance(i % 3 ? 0 : 100);
        }
        await place.advance(10_000);
        expect([...ended.keys()].sort()).toEqual([...due.keys()].sort());
        for (const [name, at] of due) expect((ended.get(name) ?? 0) - at).toBeGreaterThanOrEqual(0);
        for (const [name, at] of due) expect((ended.get(name) ?? 0) - at).toBeLessThan(2);
        await client.close();
      }),
      { numRuns: 30 },
    );
  });
});

describe("a renewal", () => {
  test.each([
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "TRYAGAIN Multiple keys request during rehashing of slot",
  ])(
    "that is refused for one lock is sent for each alone, and the others keep theirs [B244]: %s",
    async (error) => {
      await lockAll(["a", "bad", "c"]);
      server.instead = (ran) => {
        if (isRenewal(ran, "bad")) throw new Error(error);
        return undefined;
      };
      // What may pass is tried again for as long as a command may take: with the others, and then alone.
      await server.advance(DUE + 6_100);
      expect([told("renewed"), told("suspended")]).toEqual([["a", "c"], ["bad"]]);
    },
  );

  test("without an answer is one failure of all its holds, and is not sent for each alone", async () => {
    await lockAll(["a", "b"]);
    renewals();
    party.keep("replies");
    await server.advance(DUE + COMMAND_TIMEOUT);
    expect(told("suspended").sort()).toEqual(["a", "b"]);
    expect(renewals()).toEqual([["a", "b"]]);
    await party.letGo();
  });
});

test("a call that is made right after another one without an answer is given up in its own time [B53]", async () => {
  party.keep("requests");
  const givenUp = async (name: string) => {
    const error = await lock(name).catch(({ code }: { code: string }) => code);
    return [error, server.clock.mono()];
  };
  const first = givenUp("first");
  await server.advance(1);
  const second = givenUp("second");
  await server.advance(2 * COMMAND_TIMEOUT);
  expect(await Promise.all([first, second])).toEqual([
    ["UNAVAILABLE", COMMAND_TIMEOUT],
    ["UNAVAILABLE", COMMAND_TIMEOUT + 1],
  ]);
  await party.letGo();
});
