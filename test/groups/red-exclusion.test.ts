/**
 * At most one holder, checked by a separate server: with all masters up, with masters that die or stop, with a minority
 * away.
 */
import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import {
  forFile,
  PATIENCE,
  type RedisServer,
  startRedis,
  startWorker,
  until,
  type Worker,
} from "../support/index.js";
import { useMasters } from "./red-helpers.js";

/** Masters that remember every grant, whenever they die. */
const FAITHFUL = ["--appendonly", "yes", "--appendfsync", "always"];
const TERMS = { tasks: 4, lease: 12_000, safe: 6_000 };
/** The time of a test on a busy machine: all tests wait for a number of counted sections, not for a time. */
const LIMIT = { timeout: 6 * PATIENCE };

const faithful = await useMasters(3, FAITHFUL);
const plain = await useMasters(5);

interface Figures {
  readonly sections: number;
  readonly tooLate: number;
  readonly failed: number;
  readonly errors: readonly string[];
}

let workers: Worker[] = [];

const witness = await forFile(startRedis());

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
  workers = [];
});

/** Four processes compete for the lock until `during` is over; returns their figures and the witness's violations. */
async function contend(
  masters: readonly RedisServer[],
  during: () => Promise<void>,
  broken: boolean = false,
): Promise<Figures & { violations: number }> {
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
    violations: Number((await witness.call("GET", "violations")) ?? 0),
  };
}

/** Resolves when the witness has counted that many more. */
async function more(what: "count" | "violations", number: number): Promise<void> {
  const told = async () => Number((await witness.call("GET", what)) ?? 0);
  const goal = (await told()) + number;
  await until(`${what} is ${goal}`, async () => (await told()) >= goal, { ...LIMIT, every: 20 });
}

test("four processes of four tasks on three masters never meet", LIMIT, async () => {
  const seen = await contend(plain.slice(0, 3), () => more("count", 300));
  expect(seen).toMatchObject({ violations: 0, errors: [] });
});

test(
  "nor do they while one master at a time is killed or stopped, as long as masters remember",
  LIMIT,
  async () => {
    const seen = await contend(faithful, async () => {
      for (let i = 0; i < 12; i++) {
        const master = faithful[randomInt(3)] as RedisServer;
        if (i % 2 === 0) {
          await master.kill();
          await pause(randomInt(200));
          await master.restart();
        } else {
          master.pause();
          await pause(randomInt(400));
          master.resume();
        }
        await more("count", 20);
      }
    });
    expect(seen).toMatchObject({ violations: 0, errors: [] });
  },
);

test("nor on five masters of which two are stopped", LIMIT, async () => {
  for (const i of [1, 3]) plain[i]?.pause();
  const seen = await contend(plain, () => more("count", 150));
  expect(seen).toMatchObject({ violations: 0, errors: [] });
});

test("a lock that does not exclude is noticed", LIMIT, async () => {
  const seen = await contend(plain.slice(0, 3), () => more("violations", 1), true);
  expect(seen.violations).toBeGreaterThan(0);
});
