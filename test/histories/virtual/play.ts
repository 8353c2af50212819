/** Plays one game from a seed: processes on a virtual lock, their claims, and the verdict of the checks. */
import { check, type Limits } from "../../exclusion/checker.js";
import { mutex, readWriteLock } from "../specs.js";
import { checkLinearizable } from "../wing-gong.js";
import { LockRecord, NAME, ns } from "./lock-record.js";
import { type LockKind, LockStore } from "./lock-store.js";
import { LockTask } from "./lock-tasks.js";
import type { Mistake } from "./mistakes.js";
import { World } from "./world.js";

const PROCESSES = 3;
const TASKS = 2;
const ROUNDS = 8;
/** The most states of a search: many times as many as a right lock needs. */
const MOST = 20_000;
/** Milliseconds after which everything without renewal is over. */
const LONG_AFTER = 10_000;

/** Settings without pauses and kills: a waiter sleeps until it is woken. */
const CALM = { pollCap: 10_000, alive: 60_000, watchdog: 6_000, lease: [3_000, 4_000], wait: 6_000 } as const;
const WILD = { pollCap: 300, alive: 900, watchdog: 600, lease: [300, 1_200], wait: 8_000 } as const;

export interface Result {
  readonly operations: number;
  readonly states: number;
  /** The answers that the search refutes, and the findings of the check of intervals. */
  readonly findings: readonly string[];
}

export function playLock(kind: LockKind, seed: number, mistake?: Mistake): Result {
  const wild = seed % 2 === 0;
  const world = new World({ processes: PROCESSES, seed, mistake });
  const { alive, ...times } = wild ? WILD : CALM;
  const store = new LockStore(world, kind, alive);
  const record = new LockRecord(world);
  const forced = kind === "lock" && seed % 5 === 0;
  const setting = { world, kind, store, record, forced, polls: wild, ...times };
  for (const process of world.processes) {
    for (let i = 0; i < TASKS; i++) process.spawn(new LockTask(setting, process).work(ROUNDS));
  }
  disturb({ world, wild });
  world.run();
  record.close();

  const spec = kind === "read-write" ? readWriteLock : mutex;
  const verdict = checkLinearizable(record.operations, spec, MOST);
  const refuted = verdict.linearizable
    ? []
    : [verdict.linearizable === false ? "not linearizable" : "undecided"];
  const before = { lock: undefined, fair: "all", "read-write": "readers" } as const;
  const at = world.now + LONG_AFTER;
  world.now = at;
  const closed = store.look("write") || store.look("read");
  const sightings = [{ lock: NAME, at: ns(at), ttl: closed ? 1 : -2 }];
  const findings = check({ ...record.intervals(before[kind]), sightings }, limitsOf(wild));
  const kinds = findings.map((finding) => `${finding.kind}: ${finding.detail}`);
  return { operations: record.operations.length, states: verdict.states, findings: [...refuted, ...kinds] };
}

function limitsOf(wild: boolean): Limits {
  const { lease, watchdog } = wild ? WILD : CALM;
  const longest = Math.max(watchdog, lease[1]);
  return wild
    ? { lease: longest, margin: 1_000, patience: 4_500, absence: 2_000 }
    : { lease: longest, margin: 1_000, patience: 2_000 };
}

/** Cuts subscriptions; in a wild game also pauses processes, and kills some, but never the first one. */
function disturb({ world, wild }: { world: World; wild: boolean }): void {
  const { random, processes } = world;
  const [survivor] = processes;
  for (let i = 0; i < 12; i++) {
    world.after(random.below(3_000), () => random.pick(processes).deafen());
    if (!wild) continue;
    const victim = random.pick(processes);
    const kills = victim !== survivor && random.chance(0.15);
    world.after(random.below(3_000), () => {
      if (victim.diedAt !== undefined || victim.isPaused) return;
      if (kills) victim.kill();
      else victim.pause(random.below(random.chance(0.3) ? 3 * WILD.watchdog : 100));
    });
  }
}
