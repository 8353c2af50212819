/**
 * Like planted.test.ts, for the other kinds: the checker finds each single mistake in the library, and passes the same
 * events without it. `pollCap` is long where a poll would replace a wake-up that does not come.
 */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { until } from "../support/index.js";
import type { FindingKind, Limits } from "./checker.js";
import { Scene, startServers } from "./scene.js";

const LEASE = 1_500;
const LONG = 90_000;
/** Within these limits the real locks serve all calls, also on a busy machine; a mutant makes them wait longer. */
const LIMITS: Limits = { lease: LEASE, margin: 1_000, patience: 2_500 };
const STUCK = 5_500;
/** Longer than a test: no call polls or gives up. No lease is renewed, except `LEASE`, which is the watchdog's. */
const ASLEEP = 60_000;

const servers = await startServers();

interface Plot {
  readonly mutant: string;
  readonly title: string;
  readonly kind: "fair" | "fenced" | "readwrite";
  readonly options?: object;
  readonly limits?: Limits;
  readonly found: FindingKind;
  play(scene: Scene): Promise<void>;
}

/** Longer than a waiter that seems to be dead has its last chance, and than who asked meanwhile takes to ask again. */
const PAST_LAST_CHANCE = 2_000;

/** A waiter sleeps for `ms` more when the lock becomes free, and then another process asks for the lock. */
async function passBy(scene: Scene, options: object, ms = 0): Promise<void> {
  const [a, b, c] = await Promise.all([scene.enter("a"), scene.enter("b", options), scene.enter("c")]);
  const first = await c.take(0, LONG);
  const second = await a.queue(ASLEEP, LONG);
  a.worker.pause();
  await c.give(first);
  const third = await b.queue(ASLEEP, LONG);
  // Nothing is to happen, so there is nothing to wait for.
  await delay(ms);
  a.worker.resume();
  await Promise.all([second.given(), third.given()]);
}

const fair: Omit<Plot, "kind">[] = [
  {
    mutant: "frees-others",
    title: "a release that does not ask whose the lock is",
    found: "overlap",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      const late = await a.take(0, LEASE);
      a.worker.pause();
      await scene.untilLapsed();
      const other = await b.take(0, LONG);
      a.worker.resume();
      await a.give(late);
      await a.give(await a.take(1_500, LONG, { fleeting: true }));
      await b.give(other);
    },
  },
  {
    mutant: "client-clock",
    title: "a queue pruned by a clock that is an hour ahead",
    options: { pollCap: 3_000 },
    found: "overtaken",
    play: (scene) => passBy(scene, { skew: 3_600_000 }, PAST_LAST_CHANCE),
  },
  {
    mutant: "scoreless-head",
    title: "a head without a time, left by who died between two commands",
    found: "stuck",
    async play(scene) {
      await servers.locks.call("RPUSH", `redisson_lock_queue:{${scene.lock}}`, "nobody:1");
      const a = await scene.enter("a");
      await a.give(await a.take(STUCK, LONG));
    },
  },
  {
    mutant: "silent-abandon",
    title: "a head that gives up while the lock is free",
    options: { pollCap: ASLEEP },
    found: "stuck",
    async play(scene) {
      const [a, b, c] = await Promise.all([scene.enter("a"), scene.enter("b"), scene.enter("c")]);
      const first = await c.take(0, LONG);
      const second = await a.queue(ASLEEP, LONG, { fleeting: true });
      const third = await b.queue(STUCK, LONG);
      a.worker.pause();
      await c.give(first);
      // When it is awake again, it finds two things: its turn has come, and it has to give up.
      const gone = a.giveUp();
      a.worker.resume();
      await gone;
      await Promise.all([second.given(), third.given()]);
    },
  },
  {
    mutant: "barging",
    title: "whoever comes by when the lock is free",
    options: { pollCap: ASLEEP },
    found: "overtaken",
    play: (scene) => passBy(scene, {}),
  },
  {
    mutant: "patient-queue",
    title: "a waiter that was killed",
    options: { pollCap: 300 },
    limits: { ...LIMITS, absence: 1_200 },
    found: "stuck",
    async play(scene) {
      const [a, b, c] = await Promise.all([scene.enter("a"), scene.enter("b"), scene.enter("c")]);
      const first = await c.take(0, LONG);
      await a.queue(STUCK, LONG);
      await a.kill();
      const second = await b.queue(STUCK, LONG);
      await c.give(first);
      await second.given();
    },
  },
];

const fenced: Omit<Plot, "kind">[] = [
  {
    mutant: "expiring-counter",
    title: "a counter that lapses",
    found: "token",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      for (let i = 0; i < 3; i++) await a.give(await a.take(0, LEASE));
      const counter = `redisson_lock_token:{${scene.lock}}`;
      await until(
        "the counter has lapsed, or has no end",
        async () => Number(await servers.locks.call("PTTL", counter)) < 0,
      );
      await b.give(await b.take(0, LEASE));
    },
  },
  {
    mutant: "counter-from-one",
    title: "a server that has forgotten everything",
    found: "token",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      for (let i = 0; i < 3; i++) await a.give(await a.take(0, LEASE));
      await servers.locks.call("DEL", `redisson_lock_token:{${scene.lock}}`);
      await b.give(await b.take(0, LEASE));
    },
  },
];

const readwrite: Omit<Plot, "kind">[] = [
  {
    mutant: "reader-beside-writer",
    title: "a reader that comes while one writes",
    found: "overlap",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      const written = await a.take(0, LONG, { side: "write" });
      await b.give(await b.take(1_500, LONG, { side: "read" }));
      await a.give(written);
    },
  },
  {
    mutant: "frees-other-readers",
    title: "a reader that leaves while another reads on",
    found: "overlap",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      const first = await a.take(0, LONG, { side: "read" });
      await b.give(await b.take(1_500, LONG, { side: "read" }));
      await b.give(await b.take(1_500, LONG, { side: "write" }));
      await a.give(first);
    },
  },
  {
    mutant: "read-cuts-write",
    title: "a writer that reads for a moment",
    found: "overlap",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      const written = await a.take(0, LONG, { side: "write" });
      for (let i = 0; i < 2; i++) await a.nest(written, { side: "read", lease: LEASE - 1 });
      await a.unnest(written);
      await b.give(await b.take(LEASE + 1_000, LONG, { side: "write" }));
      await a.give(written);
    },
  },
  {
    mutant: "silent-downgrade",
    title: "a writer that goes on as a reader",
    options: { pollCap: ASLEEP },
    found: "stuck",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      const written = await a.take(0, LONG, { side: "write" });
      const second = await b.queue(STUCK, LONG, { side: "read" });
      const read = await a.downgrade(written, LONG);
      await second.given();
      await a.give(read);
    },
  },
  {
    mutant: "forgotten-downgrade",
    title: "a writer that goes on as a reader, and a writer that comes",
    found: "overlap",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      const written = await a.take(0, LONG, { side: "write" });
      const read = await a.downgrade(written, LONG);
      await b.give(await b.take(1_500, LONG, { side: "write" }));
      await a.give(read);
    },
  },
  {
    mutant: "leases-add-up",
    title: "a writer that is killed after it came in again and again",
    found: "stuck",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      const lease = 2 * LEASE;
      const written = await a.take(0, lease, { side: "write" });
      for (let i = 0; i < 5; i++) await a.nest(written, { side: "write", lease });
      await a.kill();
      await b.give(await b.take(lease + STUCK, LONG, { side: "write" }));
    },
  },
  {
    mutant: "renews-all-readers",
    title: "a reader that is killed beside one that reads on",
    options: { watchdogTimeout: 6_000 },
    limits: { ...LIMITS, lease: 6_000 },
    found: "stuck",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      await a.take(0, 6_000, { side: "read" });
      const second = await b.take(0, 6_000, { side: "read" });
      await a.kill();
      const holds = async () =>
        ((await servers.locks.call("KEYS", `{${scene.lock}}:*:rwlock_timeout:1`)) as string[]).length;
      const soon = performance.now() + 7_500;
      await until(
        "the dead one's hold has lapsed, or should have",
        async () => {
          return (await holds()) === 1 || performance.now() > soon;
        },
        { timeout: 9_000 },
      );
      await b.give(second);
      await b.give(await b.take(STUCK, LONG, { side: "write" }));
    },
  },
  {
    mutant: "upgrade-admitted",
    title: "a reader that wants to write",
    found: "overlap",
    async play(scene) {
      const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
      const first = await a.take(0, LONG, { side: "read" });
      const second = await b.take(0, LONG, { side: "read" });
      await a.give(await a.take(1_500, LONG, { side: "write", within: first, fleeting: true }));
      await Promise.all([a.give(first), b.give(second)]);
    },
  },
  {
    mutant: "ignores-writers",
    title: "a reader that comes while a writer waits",
    options: { pollCap: ASLEEP },
    found: "overtaken",
    async play(scene) {
      const [a, b, c] = await Promise.all([scene.enter("a"), scene.enter("b"), scene.enter("c")]);
      const first = await a.take(0, LONG, { side: "read" });
      const written = await b.queue(ASLEEP, LONG, { side: "write" });
      const read = await c.queue(ASLEEP, LONG, { side: "read" });
      await a.give(first);
      await Promise.all([written.given(), read.given()]);
    },
  },
  {
    mutant: "undying-writer",
    title: "a waiting writer that is killed",
    options: { pollCap: 300 },
    limits: { ...LIMITS, absence: 1_200 },
    found: "stuck",
    async play(scene) {
      const [a, b, c] = await Promise.all([scene.enter("a"), scene.enter("b"), scene.enter("c")]);
      const first = await a.take(0, LONG, { side: "read" });
      await b.queue(STUCK, LONG, { side: "write" });
      await b.kill();
      await c.give(await c.take(LEASE + STUCK, LONG, { side: "read" }));
      await a.give(first);
    },
  },
];

const plots: Plot[] = [
  ...fair.map((plot): Plot => ({ ...plot, kind: "fair" })),
  ...fenced.map((plot): Plot => ({ ...plot, kind: "fenced" })),
  ...readwrite.map((plot): Plot => ({ ...plot, kind: "readwrite" })),
];

describe.concurrent.each(plots)("$kind, $mutant: $title", (plot) => {
  test.each([
    ["is found", plot.mutant, plot.found],
    ["and the real lock passes", undefined, undefined],
  ])(
    "%s",
    async (_title, mutant, found) => {
      const { kind, mutant: name, options, limits } = plot;
      const planted = "holdfast";
      const told = { kind, mutant, watchdogTimeout: LEASE, ...options };
      const scene = new Scene(servers, { planted, options: told }, `${name}-${mutant ? "planted" : "real"}`);
      try {
        await plot.play(scene);
        const findings = await scene.judge(limits ?? LIMITS);
        // A mutant may be found in several ways; the real lock must not be found in any.
        if (found === undefined) expect(findings).toEqual([]);
        else expect(findings.map(({ kind }) => kind)).toContain(found);
      } finally {
        await scene.end();
      }
    },
    120_000,
  );
});
