/**
 * Latches that several processes count down and wait for: each is counted down to one, looked at, and then opened. The
 * findings are sentences.
 */
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import { until, type Worker } from "../support/index.js";
import type { Crowd } from "./crowd.js";
import { inMs } from "./sections.js";

/** Milliseconds over which the counts of a latch are spread. */
const SPREAD = 40;

export interface Rounds {
  readonly latches: number;
  readonly counts: number;
  /** The number of waiters in all processes. */
  readonly awaited: number;
  readonly findings: readonly string[];
}

export interface Play {
  readonly lanes: number;
  readonly ms: number;
  /** The rounds go on until this many replies or requests were lost: a slow machine takes longer for that. */
  readonly losses?: number;
  /** Milliseconds that everything may take longer, because the machine was slow. */
  readonly slack?: () => number;
}

/** Plays latches one after the other in each lane, for `ms` milliseconds. */
export async function playRounds(crowd: Crowd, play: Play): Promise<Rounds> {
  const { lanes, ms, losses = 0, slack = () => 0 } = play;
  const server = crowd.site.connect();
  const end = performance.now() + ms;
  const played: Rounds[] = [];
  const lane = async (_: unknown, index: number): Promise<void> => {
    let number = 0;
    do played.push(await playRound(crowd, server, `${crowd.prefix}-${index}-${number++}`, slack));
    while (performance.now() < end || crowd.lost < losses);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  const total = (of: (round: Rounds) => number) => played.reduce((sum, round) => sum + of(round), 0);
  return {
    latches: played.length,
    counts: total(({ counts }) => counts),
    awaited: total(({ awaited }) => awaited),
    findings: played.flatMap(({ findings }) => findings),
  };
}

async function playRound(
  crowd: Crowd,
  server: Redis | Cluster,
  latch: string,
  slack: () => number,
): Promise<Rounds> {
  const { workers } = crowd;
  const { patience } = crowd.part.limits;
  const findings: string[] = [];
  const shares = workers.map(() => randomInt(1, 5));
  const count = 1 + shares.reduce((sum, share) => sum + share, 0);
  const set = await Promise.all(
    workers.map((worker) => worker.request<boolean | undefined>("set", { latch, count })),
  );
  const setters = set.filter(Boolean).length;
  const isRight = setters === 1 || (setters === 0 && set.includes(undefined));
  if (!isRight) findings.push(`${latch} was set by ${setters}`);
  // A set without an answer in time is still on its way, and the latch is open until it arrives.
  await until("it is set", async () => (await server.get(latch)) !== null, { timeout: patience }).catch(
    () => {
      // The counts will show it.
    },
  );
  const asked = workers.map(() => randomInt(1, 4));
  const through: bigint[] = [];
  const waiting = workers.map(async (worker, i) => {
    through.push(...(await worker.request<bigint[]>("await", { latch, waiters: asked[i] })));
  });
  const everybody = Promise.all(waiting);
  everybody.catch(() => {}); // a waiter that is left ends when its client is closed
  const countDown = (worker: Worker, times: number) =>
    worker.request<bigint[]>("countDown", { latch, times, within: SPREAD });
  await Promise.all(workers.map((worker, i) => countDown(worker, shares[i] as number)));
  // A count without an answer in time is still on its way.
  let left = Number.NaN;
  const isLast = async () => {
    left = Number(await server.get(latch));
    return left === 1;
  };
  await until("one is left", isLast, { timeout: patience }).catch(() => {
    // The line below reports it.
  });
  if (left !== 1) findings.push(`${latch}: after ${count - 1} of ${count} counts ${left} are left, not 1`);
  const before = process.hrtime.bigint();
  await countDown(workers[randomInt(workers.length)] as Worker, 1);
  const limit = new AbortController();
  const { signal } = limit;
  const late = sleep(patience, undefined, { signal }).then(() => sleep(slack(), undefined, { signal }));
  await Promise.race([everybody, late.catch(() => {})]);
  limit.abort();
  const awaited = asked.reduce((sum, waiters) => sum + waiters, 0);
  if (through.length < awaited) findings.push(`${latch} is open, and ${awaited - through.length} still wait`);
  for (const at of through) {
    if (at < before) findings.push(`${latch}: one was through ${inMs(before - at)} ms early`);
  }
  return { latches: 1, counts: count, awaited, findings };
}
