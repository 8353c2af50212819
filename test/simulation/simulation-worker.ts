/** The bundled part of a simulation, run in a process: plays schedules by their seeds, or a given one. */
import { Random } from "../support/random.js";
import { PLANTED, type Planted } from "./planted.js";
import { KINDS, type Kind, makeSchedule, type Schedule } from "./schedule.js";
import { shrink } from "./shrink.js";
import { type Manner, type Outcome, Simulation } from "./simulation.js";

export interface Job {
  readonly seed: number;
  readonly schedules: number;
  /** The number of processes, and the number of this one. */
  readonly parts: number;
  readonly part: number;
  readonly kind?: Kind;
  readonly replay?: Schedule;
  /** Mistakes that are searched, one after the other, from their seeds on. */
  readonly planted?: readonly string[];
  /** The search ends with the first failure, which is not shrunk. */
  readonly isShort?: boolean;
  /** The only check is whether histories are linearizable. */
  readonly onlyHistory?: boolean;
}

export interface Finding {
  readonly kind: Kind;
  readonly seed: number;
  readonly failure: string;
  readonly shortest: Schedule;
  readonly planted?: string | undefined;
}

export interface Done {
  played: number;
  calls: number;
  granted: number;
  /** Of all histories, and the states that were searched to put them in order. */
  operations: number;
  states: number;
  /** Of each schedule, of all that happened in it. */
  hashes: string[];
}

let playing: Schedule | undefined;
process.on("uncaughtExceptionMonitor", () => {
  if (playing) console.error(`${playing.kind}, seed ${playing.seed}: the process ended as it played this`);
});

async function play(schedule: Schedule, manner: Manner): Promise<Outcome> {
  playing = schedule;
  const random = new Random(schedule.seed ^ 0x27d4eb2f);
  Math.random = () => random.next();
  return new Simulation(schedule, manner).play();
}

/** Plays a share of the schedules, and tells each failure. */
async function search(job: Job, planted?: string): Promise<Done> {
  const { seed, schedules, parts, part, kind, isShort, onlyHistory } = job;
  const done: Done = { played: 0, calls: 0, granted: 0, operations: 0, states: 0, hashes: [] };
  for (let i = part; i < schedules; i += parts) {
    const schedule = makeSchedule(kind ?? (KINDS[i % KINDS.length] as Kind), seed + i);
    const outcome = await play(schedule, { onlyHistory });
    done.played++;
    for (const sum of ["calls", "granted", "operations", "states"] as const) done[sum] += outcome[sum];
    done.hashes.push(outcome.hash);
    const { failure } = outcome;
    if (failure === undefined) continue;
    const shortest = isShort
      ? schedule
      : await shrink(schedule, async (tried) => (await play(tried, { onlyHistory })).failure);
    const finding: Finding = { kind: schedule.kind, seed: seed + i, failure, shortest, planted };
    process.send?.({ finding });
    if (isShort || planted !== undefined) break;
  }
  return done;
}

function mistakeOf(name: string): Planted {
  const mistake = PLANTED.find((each) => each.name === name);
  if (mistake) return mistake;
  throw new RangeError(`no mistake is called "${name}"`);
}

/** Plants a share of the mistakes, one after the other, and looks for each from its seed on. */
async function searchMistakes(job: Job, names: readonly string[]): Promise<Done> {
  const { parts, part } = job;
  let done = await search({ ...job, schedules: 0 });
  for (const [i, name] of names.entries()) {
    if (i % parts !== part) continue;
    const { kind, seed, plant } = mistakeOf(name);
    const repair = plant();
    done = await search({ ...job, kind, seed, parts: 1, part: 0 }, name);
    repair();
  }
  return done;
}

async function run(job: Job): Promise<object> {
  if (job.kind && !KINDS.includes(job.kind)) throw new RangeError(`kinds are ${KINDS.join(", ")}`);
  const { replay, onlyHistory } = job;
  if (job.planted && replay) for (const name of job.planted) mistakeOf(name).plant();
  if (job.planted && !replay) return { done: await searchMistakes(job, job.planted) };
  if (replay) return { outcome: await play(replay, { isRead: true, onlyHistory }) };
  return { done: await search(job) };
}

// A long report is on its way for a while.
void run(JSON.parse(process.argv[2] ?? "{}") as Job).then((report) =>
  process.send?.(report, () => process.disconnect()),
);
