// `node bench/redisson.mjs`, or the last scenario of `npm run bench`, measures this library and Redisson, the newest
// that interop/pom.xml names. They take turns on one redis-server of their own, in one interleaved run: never both at
// once. It prints medians, and the median of the ratios of each repeat.
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { killAll } from "../examples/children.mjs";
import { startServer } from "../examples/server.mjs";
import { buildDriver, pinnedVersions } from "../interop/build.mjs";
import { Redis } from "./lib/ioredis.mjs";
import { quantile, sorted, sum, summary } from "./lib/stats.mjs";
import { startJvm, startNode } from "./sides.mjs";

const REPEATS = Number(process.env.BENCH_REPEATS ?? 5);
const SLICE_MS = Number(process.env.BENCH_SLICE_MS ?? 600);
const CONTENDED_MS = Number(process.env.BENCH_CONTENDED_MS ?? 1_200);
/** Before what is measured. A JVM compiles for long what it does often. */
const WARM_UP_MS = { holdfast: 1_000, Redisson: 6_000 };
const SIDES = ["holdfast", "Redisson"];
const PROCESSES = 4;
const TASKS = 4;
const KEPT = 1_000;
const WATCHDOG = 3_000;
/** Two rounds of renewal. */
const KEPT_MS = 2_000;
const WAITERS = 200;
/** Redisson pings each of its connections as often. */
const IDLE_MS = 30_000;
const SETTLING_MS = 2_000;
/** What the scripts of both sides call in Redis, and what the bench itself asks. All else is sent by a client. */
const NOT_SENT =
  /^(exists|hexists|hget|hset|hincrby|hdel|hlen|pttl|pexpire|publish|get|set|del|time|info|config.*)$/;

const round = (value, digits = 2) => Number(value.toFixed(digits));

/** Each repeat measures both sides, one after the other, in alternating order. */
async function inTurn(measure) {
  const results = { holdfast: [], Redisson: [] };
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (const side of repeat % 2 ? SIDES : [...SIDES].reverse()) results[side].push(await measure(side));
  }
  return results;
}

const rows = [];

function print(label, results, unit, digits = 0) {
  const ratios = results.holdfast.map((value, i) => value / results.Redisson[i]);
  const row = { label, unit, digits, ...results, ratio: summary(ratios) };
  rows.push(row);
  const [ours, theirs] = SIDES.map((side) => `${round(summary(results[side]).med, digits)}${unit}`);
  const { med, min, max } = row.ratio;
  console.log(
    `${label.padEnd(46)} holdfast ${ours.padEnd(10)} Redisson ${theirs.padEnd(10)} ratio ${med.toFixed(2)} [${min.toFixed(2)} to ${max.toFixed(2)}]`,
  );
}

/** What was called in Redis since the last look, by command. */
async function commandsSince(redis) {
  const stats = await redis.info("commandstats");
  await redis.config("RESETSTAT");
  return new Map([...stats.matchAll(/cmdstat_(\S+):calls=(\d+)/g)].map(([, name, n]) => [name, Number(n)]));
}

function sentAmong(commands) {
  return [...commands].filter(([name]) => !NOT_SENT.test(name));
}

/** One figure of all results. */
function only(results, what) {
  const of = (side) => results[side].map((result) => result[what]);
  return Object.fromEntries(SIDES.map((side) => [side, of(side)]));
}

async function takesAndGivesBack(label, processes, tasks) {
  const measure = (side, ms) => processes[side].call({ scenario: "cycles", tasks, ms });
  for (const side of SIDES) await measure(side, WARM_UP_MS[side]);
  print(label, await inTurn((side) => measure(side, SLICE_MS)), "/s");
}

async function uncontended(start) {
  const processes = await eachSide((side) => start[side]());
  await takesAndGivesBack("take + give back, serial", processes, 1);
  await takesAndGivesBack("take + give back, 64 in flight", processes, 64);
  for (const side of SIDES) await processes[side].end();
}

/** The stays of all processes in the order of their beginning: nobody may come in before the last one has left. */
function judged(stays, counted) {
  for (const [i, { entered }] of stays.entries()) {
    if (i > 0 && entered < stays[i - 1].left) throw new Error("two had the lock at once");
  }
  if (counted !== stays.length) throw new Error(`${stays.length} stays were counted as ${counted}`);
}

function summaryOf(stays) {
  const next = stays.slice(1).map(({ entered, by }, i) => ({
    waited: (entered - stays[i].left) / 1e6,
    handed: by !== stays[i].by,
  }));
  const waits = sorted(next.filter(({ handed }) => handed).map(({ waited }) => waited));
  const seconds = (stays.at(-1).left - stays[0].entered) / 1e9;
  return {
    takes: stays.length / seconds,
    handed: waits.length / seconds,
    middle: quantile(waits, 0.5),
    late: quantile(waits, 0.99),
  };
}

async function contended(start, redis) {
  const fleets = await eachSide((side) =>
    Promise.all(Array.from({ length: PROCESSES }, () => start[side]())),
  );
  const measure = async (side, ms) => {
    await redis.set("bench:counter", 0);
    const call = (member) => member.call({ scenario: "handOver", tasks: TASKS, ms });
    const perProcess = await Promise.all(fleets[side].map(call));
    const stays = perProcess
      .flatMap((pairs, by) => pairs.map(([entered, left]) => ({ entered, left, by })))
      .sort((a, b) => a.entered - b.entered);
    judged(stays, Number(await redis.get("bench:counter")));
    return summaryOf(stays);
  };
  for (const side of SIDES) await measure(side, WARM_UP_MS[side]);
  const results = await inTurn((side) => measure(side, CONTENDED_MS));
  const label = `one lock, ${PROCESSES} processes x ${TASKS}`;
  print(`${label}: takes`, only(results, "takes"), "/s");
  print("… of them handed to another process", only(results, "handed"), "/s");
  print("… from release to that one, p50", only(results, "middle"), " ms", 2);
  print("… from release to that one, p99", only(results, "late"), " ms", 2);
  for (const side of SIDES) for (const member of fleets[side]) await member.end();
}

async function kept(start, redis) {
  const processes = await eachSide((side) => start[side]({ watchdog: WATCHDOG }));
  const measure = async (side) => {
    const { call } = processes[side];
    await call({ scenario: "keep", locks: KEPT });
    await commandsSince(redis);
    const before = await call({ scenario: "cpu" });
    await pause(KEPT_MS);
    const cpu = (await call({ scenario: "cpu" })) - before;
    const commands = await commandsSince(redis);
    await call({ scenario: "giveBack", locks: KEPT });
    const thousands = commands.get("pexpire") / 1_000;
    const sent = sum(sentAmong(commands).map(([, n]) => n));
    return { cpu: cpu / thousands, sent: sent / thousands };
  };
  for (const side of SIDES) {
    await processes[side].call({ scenario: "cycles", tasks: 1, ms: WARM_UP_MS[side] / 2 });
    await measure(side);
  }
  const results = await inTurn(measure);
  print("1000 renewals: commands", only(results, "sent"), "", 1);
  print("1000 renewals: CPU of the client", only(results, "cpu"), " ms", 1);
  for (const side of SIDES) await processes[side].end();
}

async function idle(start, redis) {
  const found = { holdfast: {}, Redisson: {} };
  for (const side of SIDES) {
    await redis.flushall();
    const process = await start[side]();
    await process.call({ scenario: "park", tasks: WAITERS });
    await pause(SETTLING_MS);
    await commandsSince(redis);
    await pause(IDLE_MS);
    const sent = sentAmong(await commandsSince(redis));
    const { connections, bytes } = await connectionsOfOthers(redis);
    const perSecond = sum(sent.map(([, n]) => n)) / (IDLE_MS / 1_000);
    found[side] = { perSecond, connections, bytes: bytes / 1_000, resident: residentOf(process.pid) };
    console.log(
      `${side} sent in ${IDLE_MS / 1_000} s: ${sent.map(([name, n]) => `${n} ${name}`).join(", ")}`,
    );
    await process.end();
  }
  const of = (what) => Object.fromEntries(SIDES.map((side) => [side, [found[side][what]]]));
  const label = `${WAITERS} idle waiters`;
  print(`${label}: commands a second`, of("perSecond"), "", 2);
  print(`${label}: connections`, of("connections"), "");
  print(`${label}: memory of these in Redis`, of("bytes"), " kB");
  print(`${label}: resident memory of the client`, of("resident"), " MB");
}

async function connectionsOfOthers(redis) {
  const own = await redis.client("ID");
  const clients = (await redis.client("LIST")).trim().split("\n");
  const others = clients.filter((line) => !line.startsWith(`id=${own} `));
  const bytes = sum(others.map((line) => Number(/tot-mem=(\d+)/.exec(line)[1])));
  return { connections: others.length, bytes };
}

/** Memory of a process, in MB. */
function residentOf(pid) {
  return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)])) / 1_000;
}

/** What comes of both sides, one after the other. */
async function eachSide(make) {
  const made = {};
  for (const side of SIDES) made[side] = await make(side);
  return made;
}

function versionOfJava() {
  return /\d[\d.]*/.exec(execFileSync("javac", ["-version"], { encoding: "utf8" }))[0];
}

/** `{ versions, rows }`, or `{ missing }` with the reason. */
export async function compareWithRedisson() {
  const [version] = pinnedVersions();
  const { classpath, missing } = buildDriver(version);
  if (missing !== undefined) return { missing };
  const directory = await mkdtemp(join(tmpdir(), "holdfast-bench-"));
  const { port } = await startServer(directory);
  const redis = new Redis({ host: "127.0.0.1", port });
  const start = {
    holdfast: (options) => startNode(port, options),
    Redisson: (options) => startJvm(classpath, port, options),
  };
  const versions = { Redisson: version, jdk: versionOfJava() };
  try {
    console.log(`\n== Redisson ${versions.Redisson} on JDK ${versions.jdk}, ${REPEATS} repeats`);
    await uncontended(start);
    await contended(start, redis);
    await kept(start, redis);
    await idle(start, redis);
    return { versions, rows };
  } finally {
    redis.disconnect();
    await killAll();
    await rm(directory, { recursive: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { missing } = await compareWithRedisson();
  if (missing !== undefined) console.log(`Without Redisson: ${missing}`);
}
