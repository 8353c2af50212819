/**
 * Groups of locks under load: random members in random orders, by several processes; no count is lost and all finish.
 */
import { expect, test } from "vitest";
import { bundledWorker } from "../faults/build-worker.js";
import { forFile, startRedis, startWorker } from "../support/index.js";
import type { Figures, Start } from "./multi-worker.js";

const bundle = bundledWorker("../exclusion/multi-worker.ts");
const servers = await Promise.all([forFile(startRedis()), forFile(startRedis())]);

/** Starts a process for each part; resolves when all have finished, which a deadlock would prevent. */
async function work(...parts: readonly Omit<Start, "ports">[]): Promise<Figures[]> {
  for (const server of servers) await server.call("FLUSHALL");
  const ports = servers.map(({ port }) => port) as [number, number];
  const workers = await Promise.all(parts.map(() => startWorker(bundle())));
  const asked = workers.map((worker, i) =>
    worker.request<Figures>("work", { ...(parts[i] as Start), ports }),
  );
  try {
    return await Promise.all(asked);
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
  }
}

async function check(figures: readonly Figures[], calls: number): Promise<void> {
  expect(figures.flatMap(({ failures }) => failures)).toEqual([]);
  expect(figures.flatMap(({ torn }) => torn)).toEqual([]);
  expect(figures.flatMap(({ waits }) => waits)).toHaveLength(calls);
  const [first] = servers;
  for (const name of new Set(figures.flatMap(({ stays }) => Object.keys(stays)))) {
    const counted = Number(await first?.call("GET", `counter:${name}`));
    expect([name, counted]).toEqual([name, figures.reduce((sum, { stays }) => sum + (stays[name] ?? 0), 0)]);
  }
  for (const server of servers) {
    const left = (await server.call("KEYS", "*multi-*")) as string[];
    expect(
      left.filter((key) => !/^(counter|redisson_(unlock_latch|lock_token)|holdfast_over):/.test(key)),
    ).toEqual([]);
  }
}

test("66 tasks of 3 processes, groups of up to 4 locks", async () => {
  const part = { tasks: 22, stays: 4, most: 4 };
  await check(await work(part, part, part), 3 * 22 * 4);
});

test("a few tasks that want everything, among many that want one", async () => {
  const figures = await work({ tasks: 24, stays: 6, most: 1 }, { tasks: 3, stays: 4, most: 8 });
  await check(figures, 24 * 6 + 3 * 4);
});
