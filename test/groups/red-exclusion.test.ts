/** At most one holder, counted on a server beside the masters: calm, with masters that die and stop, with a minority away. */
import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis, startWorker, type Worker } from "../support/index.js";
import { useMasters } from "./red-helpers.js";

/** What a master has granted it remembers, whenever it dies. */
const FAITHFUL = ["--appendonly", "yes", "--appendfsync", "always"];
const TERMS = { tasks: 4, lease: 4_000, safe: 1_500 };

const faithful = useMasters(3, FAITHFUL);
const plain = useMasters(5);

interface Figures {
  readonly sections: number;
  readonly tooLate: number;
  readonly failed: number;
  readonly errors: readonly string[];
}

let witness: RedisServer;
let workers: Worker[] = [];

beforeAll(async () => {
  witness = await startRedis();
});

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
  workers = [];
});

afterAll(() => witness?.stop());

/** Four processes go at the lock until `during` is over; resolves with what they did and what the witness says. */
async function contend(
  masters: readonly RedisServer[],
  during: () => Promise<void>,
  broken: boolean = false,
): Promise<Figures & { counted: number; violations: number }> {
  await witness.call("FLUSHALL");
  workers = await Promise.all(
    Array.from({ length: 4 }, () => startWorker(new URL("red-worker.mjs", import.meta.url))),
  );
  const ports = masters.map(({ port }) => port);
  await Promise.all(
    workers.map((worker, i) => {
      const only = broken ? { only: i % masters.length } : {};
      return worker.request("start", { ...TERMS, ...only, ports, witnessPort: witness.port });
    }),
  );
  await during();
  const all = await Promise.all(workers.map((worker) => worker.request<Figures>("stop")));
  const sum = (of: (figures: Figures) => number): number => all.reduce((total, each) => total + of(each), 0);
  return {
    sections: sum(({ sections }) => sections),
    tooLate: sum(({ tooLate }) => tooLate),
    failed: sum(({ failed }) => failed),
    errors: all.flatMap(({ errors }) => errors),
    counted: Number(await witness.call("GET", "count")),
    violations: Number((await witness.call("GET", "violations")) ?? 0),
  };
}

/** Resolves when that many sections have been counted since it was asked. */
async function sections(count: number, most: number): Promise<void> {
  const begun = Number((await witness.call("GET", "count")) ?? 0);
  const end = performance.now() + most;
  while (performance.now() < end && Number(await witness.call("GET", "count")) < begun + count)
    await pause(20);
}

test("four processes of four tasks on three masters never meet", async () => {
  const seen = await contend(plain().slice(0, 3), () => sections(500, 6_000));
  expect(seen).toMatchObject({ violations: 0, errors: [] });
  expect(seen.counted).toBeGreaterThan(50);
});

test("nor do they while one master at a time is killed or stopped, as long as masters remember", async () => {
  const harms = { killed: 0, stopped: 0 };
  const seen = await contend(faithful(), async () => {
    const end = performance.now() + 8_000;
    while (performance.now() < end) {
      const master = faithful()[randomInt(3)] as RedisServer;
      if (randomInt(2) === 0) {
        await master.kill();
        await pause(randomInt(200));
        await master.restart();
        harms.killed++;
      } else {
        master.pause();
        await pause(randomInt(400));
        master.resume();
        harms.stopped++;
      }
      await sections(20, 700);
    }
  });
  expect(seen).toMatchObject({ violations: 0, errors: [] });
  expect(seen.counted).toBeGreaterThan(50);
  expect(harms.killed + harms.stopped).toBeGreaterThan(3);
});

test("nor on five masters of which two are stopped", async () => {
  for (const i of [1, 3]) plain()[i]?.pause();
  const seen = await contend(plain(), () => sections(300, 6_000));
  expect(seen).toMatchObject({ violations: 0, errors: [] });
  expect(seen.counted).toBeGreaterThan(30);
});

test("a lock that does not exclude is noticed", async () => {
  const seen = await contend(plain().slice(0, 3), () => sections(200, 3_000), true);
  expect(seen.violations).toBeGreaterThan(0);
});
