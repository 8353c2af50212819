// In the process that measures: lets several processes contend for one lock, and reads what they have recorded.
import { counting } from "../lib/redis.mjs";
import { curve, jain, quantile, sleep, sorted, sum } from "../lib/stats.mjs";

const KEY = "bench:lock";
/** So that all processes have got the message before they start. */
const LEAD_MS = 60;
const PATIENCE_MS = 8_000;
const WARM_MS = 500;

/** Before the first window, so that it finds compiled code: many hand-overs in a short time. */
export const warmCrowd = (context, crowd, options = {}) =>
  measureCrowd(context, { crowd, windowMs: WARM_MS, holdMs: 0, counter: false, ...options });

/** `crowd`: the number of waiters of each process. The rest reaches `contend`. */
export async function measureCrowd(
  { children, servers },
  { crowd, windowMs, holdMs = 1, burst = false, graceMs, ...rest },
) {
  await Promise.all(servers.map((server) => server.flush()));
  await children[0].call("prepare", { key: KEY });
  const base = process.hrtime.bigint();
  const now = () => Number(process.hrtime.bigint() - base) / 1e6;
  const firstIds = crowd.map((_, i) => sum(crowd.slice(0, i)));
  let runs;
  let start;
  const { redis } = await counting(servers, async () => {
    start = now() + LEAD_MS;
    runs = children.slice(0, crowd.length).map((child, i) => {
      const of = {
        base,
        start,
        windowMs,
        holdMs,
        burst,
        waiters: crowd[i],
        firstId: firstIds[i],
        graceMs,
        ...rest,
      };
      return child.call("contend", of, windowMs + (graceMs ?? 0) + PATIENCE_MS);
    });
    // An answer that fails is seen below.
    const settled = Promise.allSettled(runs);
    if (burst) await settled;
    else await sleep(Math.max(0, start + windowMs - now()));
  });
  const parts = await Promise.all(runs);
  // Whole bursts count, the last one too.
  const end = start + (burst ? parts[0].took : windowMs);
  return figures({ parts, crowd, start, end, redis });
}

function sectionsOf(parts) {
  const sections = [];
  for (const [process, { record, fields }] of parts.entries()) {
    for (let i = 0; i < record.length; i += fields) {
      const [id, asked, got, left, wrote] = record.subarray(i, i + fields);
      sections.push({ process, id, asked, got, left, wrote: wrote === 1 });
    }
  }
  return sections.sort((a, b) => a.got - b.got);
}

/** By the clock that all processes share: nobody comes in before a writer has left, no writer before all have. */
function overlaps(sections) {
  let violations = 0;
  let writerLeft = 0;
  let anyLeft = 0;
  for (const { got, left, wrote } of sections) {
    if (got < (wrote ? anyLeft : writerLeft)) violations++;
    if (wrote) writerLeft = Math.max(writerLeft, left);
    anyLeft = Math.max(anyLeft, left);
  }
  return violations;
}

function figures({ parts, crowd, start, end, redis }) {
  const sections = sectionsOf(parts);
  const perWaiter = new Array(sum(crowd)).fill(0);
  const perProcess = crowd.map(() => 0);
  const waits = parts.flatMap(({ left }) => left);
  const gaps = [];
  let takes = 0;
  let crossings = 0;
  for (const [i, { process, id, asked, got }] of sections.entries()) {
    const before = sections[i - 1];
    if (asked < end) waits.push(got - asked);
    if (got > end) continue;
    takes++;
    perWaiter[id]++;
    perProcess[process]++;
    if (before && before.id !== id) gaps.push(got - before.left);
    if (before && before.process !== process) crossings++;
  }
  const seconds = (end - start) / 1_000;
  const inOrder = sorted(gaps);
  const waited = sorted(waits);
  const longest = waited[waited.length - 1];
  const total = (of) => sum(parts.map(of));
  return {
    takes: takes / seconds,
    handOvers: gaps.length / seconds,
    crossings: crossings / seconds,
    gapP50: quantile(inOrder, 0.5),
    gapP99: quantile(inOrder, 0.99),
    sentPer: total(({ sent }) => sent) / takes,
    executedPer: redis.executed / takes,
    waitP50: quantile(waited, 0.5),
    waitMax: longest,
    starvation: longest / quantile(waited, 0.5),
    jain: jain(perWaiter),
    jainProcesses: jain(perProcess),
    jainShares: jain(perProcess.map((n, i) => n / crowd[i])),
    unserved: perWaiter.filter((n) => n === 0).length,
    left: total(({ left }) => left.length),
    cpuUs: (1_000 * total(({ cpu }) => cpu)) / takes,
    burstMs: parts[0].burstMs,
    perTakeUs: (1_000 * parts[0].burstMs) / sum(crowd),
    perProcess,
    curve: curve(gaps),
    violations: total(({ violations }) => violations) + overlaps(sections),
    dirty: !parts.every(({ complete }) => complete),
  };
}

const common = [
  { key: "handOvers", label: "hand-overs/s (another waiter)", ratio: true },
  { key: "gapP50", label: "release → next p50 ms", ratio: true },
  { key: "gapP99", label: "release → next p99 ms" },
  { key: "sentPer", label: "commands sent / take", ratio: true },
  { key: "executedPer", label: "commands run in Redis / take" },
  { key: "waitP50", label: "wait p50 ms" },
  { key: "waitMax", label: "longest wait ms", ratio: true },
  { key: "cpuUs", label: "client CPU µs / take", ratio: true },
];

export const burstMetrics = [
  { key: "burstMs", label: "ms to serve all", ratio: true },
  ...common,
  { key: "left", label: "not served 1.5 s after the window" },
];

export const loopMetrics = [
  { key: "takes", label: "takes/s", ratio: true },
  ...common,
  { key: "starvation", label: "longest wait / p50" },
  { key: "jain", label: "Jain's index over waiters" },
  { key: "unserved", label: "waiters not served in the window" },
  { key: "left", label: "nor 1.5 s after it" },
];

export const processMetrics = [
  ...loopMetrics,
  { key: "crossings", label: "takes by another process than before, /s" },
  { key: "jainProcesses", label: "Jain's index over processes" },
  { key: "jainShares", label: "Jain's index over processes, takes per waiter" },
];
