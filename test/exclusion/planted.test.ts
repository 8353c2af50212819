/**
 * The test of the test: locks that are wrong in one way each are found by the checker, each in the fault that its
 * mistake does not survive; and the real lock passes the same faults.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type FaultProxy,
  type RedisServer,
  startProxy,
  startRedis,
  startWorker,
  until,
  type Worker,
} from "../support/index.js";
import { type Ask, check, type Finding, type FindingKind } from "./checker.js";
import { readCounters, readSections, sight } from "./history.js";

const LEASE = 1_200;
const LONG = 90_000;
const LIMITS = { lease: LEASE, margin: 300, patience: 10_000 };

let locks: RedisServer;
let witness: RedisServer;
let server: Redis;
let register: Redis;

beforeAll(async () => {
  [locks, witness] = await Promise.all([startRedis(), startRedis()]);
  server = locks.connect();
  register = witness.connect();
});
afterAll(() => Promise.all([locks?.stop(), witness?.stop()]));

/** One lock, two processes that want it, and a proxy before each. */
class Scene {
  readonly lock: string;
  readonly deaths: Map<string, bigint> = new Map();
  readonly asks: Ask[] = [];
  readonly #kind: string;
  readonly #workers = new Map<string, Worker>();
  readonly #proxies: FaultProxy[] = [];

  constructor(kind: string, lock: string) {
    this.#kind = kind;
    this.lock = lock;
  }

  async enter(letter: string): Promise<Actor> {
    const proxy = await startProxy(locks);
    this.#proxies.push(proxy);
    const worker = await startWorker(new URL("planted-worker.mjs", import.meta.url));
    const name = `${this.lock}-${letter}`;
    this.#workers.set(name, worker);
    const ports = { lockPort: proxy.port, witnessPort: witness.port };
    await worker.request("connect", { kind: this.#kind, ...ports, name, watchdogTimeout: LEASE });
    return new Actor(this, name, worker, proxy);
  }

  /** The lease on the server is over. */
  async untilLapsed(): Promise<void> {
    await until(`${this.lock} has lapsed`, async () => (await server.exists(this.lock)) === 0, {
      timeout: 20_000,
    });
  }

  async judge(): Promise<Finding[]> {
    const sightings = await sight(server, [this.lock]);
    const sections = (await readSections(register)).filter(({ lock }) => lock === this.lock);
    const counters = (await readCounters(register)).filter(({ lock }) => lock === this.lock);
    return check({ sections, deaths: this.deaths, counters, sightings, asks: this.asks }, LIMITS);
  }

  async end(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((worker) => worker.kill()));
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
  }
}

class Actor {
  readonly proxy: FaultProxy;
  readonly worker: Worker;
  readonly #scene: Scene;
  readonly #name: string;

  constructor(scene: Scene, name: string, worker: Worker, proxy: FaultProxy) {
    this.#scene = scene;
    this.#name = name;
    this.worker = worker;
    this.proxy = proxy;
  }

  async take(wait: number, lease: number): Promise<string | null> {
    const askedAt = process.hrtime.bigint();
    const { lock, asks } = this.#scene;
    const stay = await this.worker.request<string | null>("take", { lock, wait, lease });
    if (stay === null) asks.push({ lock, askedAt, until: process.hrtime.bigint() });
    return stay;
  }

  async give(stay: string | null): Promise<void> {
    if (stay !== null) await this.worker.request("give", stay);
  }

  kill(): Promise<unknown> {
    this.#scene.deaths.set(this.#name, process.hrtime.bigint());
    return this.worker.kill();
  }
}

type Plot = (scene: Scene, a: Actor, b: Actor) => Promise<void>;

/** SIGKILL as soon as the first command that names the lock has been sent: no second one follows. */
const killedWhileTaking: Plot = async (scene, a, b) => {
  const killed = new Promise((resolve) => {
    a.proxy.onCommand(({ command }) => {
      if (/^(GETSET|SETNX|SET|EVAL|EVALSHA)$/.test(command[0] ?? "") && command.includes(scene.lock))
        resolve(a.kill());
    });
  });
  const taking = a.take(0, LEASE).catch(() => {});
  await killed;
  await taking;
  await b.give(await b.take(LEASE + 1_000, LEASE));
};

const killedInside: Plot = async (_, a, b) => {
  await a.take(0, LEASE);
  await a.kill();
  await b.give(await b.take(LEASE + 1_000, LEASE));
};

/** A is away past its lease, B comes, A gives back late, and a third call asks while B is inside. */
const lateUnlock: Plot = async (scene, a, b) => {
  const late = await a.take(0, LEASE - 1);
  a.worker.pause();
  await scene.untilLapsed();
  const other = await b.take(0, LONG);
  a.worker.resume();
  await a.give(late);
  await a.give(await a.take(100, LONG));
  await b.give(other);
};

/** The server executes the command that takes the lock, and ioredis does not hear of it. */
const lostReply: Plot = async (scene, a, b) => {
  a.proxy.cutReplyOf((command) => command.includes(scene.lock));
  await a.give(await a.take(0, LONG));
  await b.give(await b.take(1_000, LONG));
};

/** A is away past its renewed lease, and B comes before the next renewal. */
const lateRenewal: Plot = async (scene, a, b) => {
  const late = await a.take(0, LEASE);
  a.worker.pause();
  await scene.untilLapsed();
  const other = await b.take(0, LONG);
  a.worker.resume();
  await sleep(LEASE / 2); // longer than a renewal takes to come; that there is none cannot be seen
  await a.give(late);
  await b.give(other);
};

const plots: [planted: string, title: string, plot: Plot, found: FindingKind[]][] = [
  ["getset-expire", "GETSET, then EXPIRE, and a SIGKILL between", killedWhileTaking, ["orphan"]],
  ["setnx-no-ttl", "SETNX without TTL, and a SIGKILL inside", killedInside, ["orphan"]],
  ["del-unchecked", "DEL without owner check after an expired lease", lateUnlock, ["overlap", "intrusion"]],
  ["hincrby-resent", "HINCRBY sent again after a lost reply", lostReply, ["orphan"]],
  ["renew-lost", "renewal of a lost hold", lateRenewal, ["overlap", "intrusion"]],
];

describe.concurrent.each(plots)("%s: %s", (planted, _, plot, found) => {
  test.each([
    ["is found", planted, found],
    ["and the real lock passes", "holdfast", []],
  ])(
    "%s",
    async (_title, kind, expected) => {
      const scene = new Scene(kind, `${planted}-${kind}`);
      try {
        const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
        await plot(scene, a, b);
        const findings = await scene.judge();
        const kinds = new Set(findings.map(({ kind }) => kind));
        // A planted lock may well be caught in more ways than one; the real one in none.
        if (expected.length === 0) expect(findings).toEqual([]);
        else for (const kind of expected) expect(kinds).toContain(kind);
      } finally {
        await scene.end();
      }
    },
    60_000,
  );
});
