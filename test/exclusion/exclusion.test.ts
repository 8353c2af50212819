/**
 * Several processes, each with many tasks, read and write back counters under locks, on one Redis; then the same with
 * processes that are killed and paused at random moments. HOLDFAST_SOAK_MINUTES makes the second part longer.
 */
import { randomInt } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis, startWorker, until, type Worker } from "../support/index.js";
import { check, type Finding, type History, type Limits } from "./checker.js";
import { readCounters, readSections, sight } from "./history.js";

const SOAK_MINUTES = Number(process.env.HOLDFAST_SOAK_MINUTES ?? 0);
const ACQUISITIONS = 200_000;
const PROCESSES = 4;

interface Figures {
  sections: number;
  hot: number;
  nested: number;
  refused: number;
  aborted: number;
  silent: number;
  lost: number;
  unwritten: number;
  errors: string[];
}

interface Part {
  readonly processes: number;
  readonly config: object;
  readonly limits: Limits;
}

const calm: Part = {
  processes: PROCESSES,
  config: {
    coolTasks: 48,
    cool: 1_200,
    hotTasks: 6,
    hot: 6,
    wild: false,
    lease: [10_000, 10_000],
    safe: 3_000,
    options: { watchdogTimeout: 30_000 },
  },
  limits: { lease: 30_000, margin: 5_000, patience: 3_000 },
};

const wild: Part = {
  processes: 3,
  config: {
    coolTasks: 12,
    cool: 40,
    hotTasks: 12,
    hot: 3,
    wild: true,
    lease: [1_200, 1_800],
    safe: 600,
    options: { watchdogTimeout: 1_500, pollCap: 1_000 },
  },
  limits: { lease: 1_800, margin: 3_000, patience: 1_000 },
};

let locks: RedisServer;
let witness: RedisServer;
const live = new Map<string, Worker>();
let started = 0;

beforeAll(async () => {
  [locks, witness] = await Promise.all([startRedis(), startRedis()]);
});
afterAll(async () => {
  await Promise.all([...live.values()].map((worker) => worker.kill()));
  await Promise.all([locks?.stop(), witness?.stop()]);
});

async function addWorker(part: Part): Promise<void> {
  const name = `p${++started}`;
  const worker = await startWorker(new URL("workload.mjs", import.meta.url));
  live.set(name, worker);
  const ports = { lockPort: locks.port, witnessPort: witness.port };
  await worker.request("start", { ...part.config, ...ports, name, seed: randomInt(2 ** 32) });
}

async function total(): Promise<Figures> {
  return sum(await Promise.all([...live.values()].map((worker) => worker.request<Figures>("figures"))));
}

async function stopAll(): Promise<Figures> {
  const stopped = await Promise.all([...live.values()].map((worker) => worker.request<Figures>("stop")));
  await Promise.all([...live.values()].map((worker) => worker.kill()));
  live.clear();
  return sum(stopped);
}

function sum(all: readonly Figures[]): Figures {
  const add = (key: Exclude<keyof Figures, "errors">) => all.reduce((n, figures) => n + figures[key], 0);
  return {
    sections: add("sections"),
    hot: add("hot"),
    nested: add("nested"),
    refused: add("refused"),
    aborted: add("aborted"),
    silent: add("silent"),
    lost: add("lost"),
    unwritten: add("unwritten"),
    errors: all.flatMap(({ errors }) => errors),
  };
}

/** What the witness knows, checked; the locks must be free within the limits of the last death. */
async function judge(
  deaths: ReadonlyMap<string, bigint>,
  limits: Limits,
): Promise<{ history: History; findings: Finding[] }> {
  const server = locks.connect();
  const latest = [...deaths.values()].reduce((a, b) => (a > b ? a : b), 0n);
  const deadline = Number(latest / 1_000_000n) + limits.lease + limits.margin;
  const pattern = /^(hot|cool)-/;
  const held = async () => (await server.keys("*")).filter((key) => pattern.test(key));
  await until("the locks of the dead have lapsed", async () => (await held()).length === 0, {
    timeout: Math.max(100, deadline - Number(process.hrtime.bigint() / 1_000_000n) + 100),
    every: 50,
  }).catch(() => {
    // The checker says which ones, and for how long.
  });
  const sightings = await sight(server, await held());
  const client = witness.connect();
  const sections = await readSections(client);
  const counters = await readCounters(client);
  const history: History = { sections, deaths, counters, sightings };
  const findings = check(history, limits);
  await Promise.all([client.flushall(), server.flushall()]);
  return { history, findings };
}

test(`${ACQUISITIONS} acquisitions by ${PROCESSES} processes exclude each other`, async () => {
  await Promise.all(Array.from({ length: calm.processes }, () => addWorker(calm)));
  const begun = performance.now();
  await until("enough acquisitions", async () => (await total()).sections >= ACQUISITIONS, {
    timeout: 170_000,
    every: 100,
  });
  const seconds = (performance.now() - begun) / 1_000;
  const figures = await stopAll();
  const { history, findings } = await judge(new Map(), calm.limits);
  const count = history.sections.length;
  console.log(
    `exclusion: ${count} checked acquisitions (${figures.hot} crowded) by ${calm.processes} processes in ` +
      `${seconds.toFixed(1)} s, ${findings.length} violations`,
  );
  expect(findings).toEqual([]);
  expect(figures.errors).toEqual([]);
  expect(figures.lost).toBe(0);
  expect(count).toBeGreaterThanOrEqual(ACQUISITIONS);
  const written = history.counters?.reduce((n, { writes }) => n + writes, 0);
  expect(written).toBe(count - figures.unwritten);
  expect(figures.hot).toBeGreaterThan(1_000);
}, 180_000);

test(
  "processes that are killed and paused at random leave no lock to two owners, or to none",
  async () => {
    const deaths = new Map<string, bigint>();
    let pauses = 0;
    const end = performance.now() + (SOAK_MINUTES > 0 ? SOAK_MINUTES * 60_000 : 12_000);
    await Promise.all(Array.from({ length: wild.processes }, () => addWorker(wild)));
    const kills = SOAK_MINUTES > 0 ? 0 : 20;
    while (performance.now() < end || deaths.size < kills) {
      const [name, worker] = [...live][randomInt(live.size)] as [string, Worker];
      if (randomInt(2) === 0) {
        pauses++;
        worker.pause();
        await pause(randomInt(300));
        worker.resume();
        await pause(randomInt(200));
        continue;
      }
      await pause(randomInt(300));
      deaths.set(name, process.hrtime.bigint());
      live.delete(name);
      await Promise.all([worker.kill(), addWorker(wild)]);
    }
    const figures = await stopAll();
    const { history, findings } = await judge(deaths, wild.limits);
    const open = history.sections.filter(({ leftAt }) => leftAt === undefined).length;
    console.log(
      `exclusion: ${history.sections.length} checked acquisitions, ${deaths.size} processes killed (${open} inside a ` +
        `section), ${pauses} paused, ${figures.lost} holds lost, ${findings.length} violations`,
    );
    expect(findings).toEqual([]);
    expect(figures.errors).toEqual([]);
    expect(open).toBeGreaterThan(0);
    expect(history.sections.length).toBeGreaterThan(1_000);
  },
  SOAK_MINUTES * 60_000 + 120_000,
);

/** A moment of chance is what this test is about: there is nothing to observe. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
