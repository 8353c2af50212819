/** `holdfast deadlocks`: circles of owners that wait for each other. */
import { expect, test } from "vitest";
import { circlesOf, type Edge } from "../../../src/entries/inspector/shown.js";
import type { LockInfo } from "../../../src/index.js";
import { deferred } from "../../contract/helpers.js";
import { until } from "../../support/index.js";
import { useSite } from "./program.js";

const site = await useSite();

/** The circles of the command, as soon as there are so many: what clients tell is some seconds old. */
async function circles(count: number): Promise<Edge[][]> {
  const seen = async () => {
    const found = JSON.parse((await site.main("deadlocks", "--json")).out) as Edge[][];
    return found.length === count ? found : undefined;
  };
  return (await until(`${count} circles are seen`, seen)) ?? [];
}

test("two owners in two processes that wait for each other are a circle", async () => {
  expect(await site.main("deadlocks")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^There is no circle\./),
  });
  const [a, b] = [site.client({ label: "A" }), site.client({ label: "B" })];
  const [one, two] = await Promise.all([a.getLock("dead 1").lock(), b.getLock("dead 2").lock()]);
  const ending = new AbortController();
  const { signal } = ending;
  const calls = [
    a.getLock("dead 2").lock({ owner: one, signal }),
    b.getLock("dead 1").lock({ owner: two, signal }),
  ].map((call) => call.catch(() => undefined));
  const [circle = []] = await circles(1);
  expect(circle.map(({ held }) => held).sort()).toEqual(["dead 1", "dead 2"]);
  const { code, out } = await site.main("deadlocks");
  expect(code).toBe(1);
  expect(out).toMatch(/^dead ([12]) → dead [12] → dead \1\n/);
  expect(out).toMatch(/waits for dead 2: A \(/);
  expect(out).toMatch(/waits for dead 1: B \(/);
  expect((await site.main("get", "dead 1")).out).toMatch(/ {2}● A .*\n {2}○ B /);
  ending.abort();
  await Promise.all([...calls, one.unlock(), two.unlock()]);
});

test("a fork that waits for what the run around it holds is a circle; runs that take turns are none [B249]", async () => {
  const client = site.client({ label: "A" });
  const [a, b] = [client.getLock("turns a"), client.getLock("turns b")];
  const ending = new AbortController();
  const { signal } = ending;
  const { promise: ended, resolve: end } = deferred<void>();
  const work = () => ended;
  const turns = a.run(() => b.run(() => Promise.all([a.run(work), a.run(work), b.run(work), b.run(work)])));
  const waiters = async () => JSON.parse((await site.main("waiters", "--json")).out) as unknown[];
  await until("both wait for their turns", async () => (await waiters()).length === 2);
  expect(await circles(0)).toEqual([]);
  const forks = ["fork", "read fork"].map((name) => {
    const lock = name === "fork" ? client.getLock(name) : client.getReadWriteLock(name).readLock();
    const wanted = name === "fork" ? lock : client.getReadWriteLock(name).writeLock();
    return lock.run(() => client.scope(() => wanted.run(() => {}, { signal }))).catch(() => undefined);
  });
  await circles(2);
  const { out } = await site.main("deadlocks");
  for (const name of ["fork", "read fork"])
    expect(out).toMatch(new RegExp(`^${name} → ${name}\n {2}waits for ${name}: A .*, holds ${name}$`, "m"));
  ending.abort();
  end();
  await Promise.all([turns, ...forks]);
});

const CLIENT = { id: "c", label: "A", host: "web-3", pid: 812 };

const unknown = (holds: string[]) => ({ client: null, since: null, holds });

/** A lock by its holders, of one client; `+`: the client has told of that hold. */
function heldBy(name: string, holders: readonly string[], waiting: LockInfo["waiting"]): LockInfo {
  const info = holders.map((told) => {
    const since = told.endsWith("+") ? new Date(0) : null;
    return { ownerId: told.replace("+", ""), count: 1, ttl: 1, client: CLIENT, since };
  });
  return { name, kind: "lock", holders: info, waiters: [], waiting, ttl: 1 };
}

const waiterOf = (ownerId: string, ...holds: string[]) => ({ ...unknown(holds), ownerId, client: CLIENT });

/** Locks whose waiters hold others, from edges `held>wanted`. */
function graph(...edges: string[]): LockInfo[] {
  const locks = new Map<string, LockInfo["waiting"][number][]>();
  for (const edge of edges) {
    const [held = "", wanted = ""] = edge.split(">");
    const waiter = unknown([held]);
    locks.set(held, locks.get(held) ?? []);
    locks.set(wanted, [...(locks.get(wanted) ?? []), waiter]);
  }
  return [...locks].map(([name, waiting]) => heldBy(name, [], waiting));
}

test.each<[string, LockInfo[], string[]]>([
  [
    "an owner that takes turns with itself waits for no other",
    [heldBy("a", ["c:1+"], [waiterOf("c:1", "a", "b")]), heldBy("b", ["c:2+"], [waiterOf("c:2", "b", "a")])],
    [],
  ],
  ["a fork waits for its own run", [heldBy("a", ["c:1+"], [waiterOf("c:9", "a")])], ["a>a"]],
  [
    "a fork of a fork waits for it behind a chain",
    [heldBy("x", ["d:1"], []), heldBy("a", ["c:1+"], [waiterOf("c:9", "x", "a")])],
    ["a>a"],
  ],
  ["one of several readers may be its own", [heldBy("a", ["c:1+", "c:2+"], [waiterOf("c:9", "a")])], []],
  ["an owner's hold is over, and its next is there", [heldBy("a", ["c:2"], [waiterOf("c:1", "a")])], []],
  [
    "holds are over of an owner that takes turns",
    [heldBy("a", ["c:3"], [waiterOf("c:1", "a", "b")]), heldBy("b", ["c:4"], [waiterOf("c:2", "b", "a")])],
    [],
  ],
  [
    "another reader waits for what a fork's run holds",
    [
      heldBy("a", ["c:1+", "d:1+"], [waiterOf("c:9", "a", "b")]),
      heldBy("b", ["c:2+"], [waiterOf("d:2", "a")]),
    ],
    ["a>b b>a"],
  ],
  ["no edges lead back", graph("a>b", "b>c", "a>c", "d>c"), []],
  ["a lock leads to itself, of whose holder nobody has told", graph("a>a"), []],
  ["two locks lead to each other", graph("a>b", "b>a"), ["a>b b>a"]],
  ["a circle lies behind a chain", graph("x>a", "a>b", "b>c", "c>a", "c>d"), ["a>b b>c c>a"]],
  ["two circles are joined", graph("a>b", "b>a", "b>c", "c>d", "d>c"), ["a>b b>a", "c>d d>c"]],
  [
    "a chain is longer than a stack is deep",
    graph(...Array.from({ length: 20_000 }, (_, i) => `${i}>${i + 1}`)),
    [],
  ],
])("the circles where %s [B249]", (_, locks, expected) => {
  const found = circlesOf(locks).map((circle) =>
    circle.map(({ held, wanted }) => `${held}>${wanted}`).sort(),
  );
  expect(found.map((edges) => edges.join(" ")).sort()).toEqual(expected);
});
