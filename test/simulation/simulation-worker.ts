/** The bundled part of a simulation, run in a process: plays schedules by their seeds, or a given one. */
import { Random } from "../support/random.js";
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
  /** The process ends with the first failure, which is not shrunk. */
  readonly isShort?: boolean;
  /** The only check is whether histories are linearizable. */
  readonly onlyHistory?: boolean;
}

export interface Finding {
  readonly kind: Kind;
  readonly seed: number;
  readonly failure: string;
  readonly shortest: Schedule;
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

async function run(job: Job): Promise<void> {
  const { seed, schedules, parts, part, kind, replay, isShort, onlyHistory } = job;
  if (replay) {
    process.send?.({ outcome: await play(replay, { isRead: true, onlyHistory }) });
    return;
  }
  let [played, calls, granted, operations, states, hash] = [0, 0, 0, 0, 0, ""];
  for (let i = part; i < schedules; i += parts) {
    const schedule = makeSchedule(kind ?? (KINDS[i % KINDS.length] as Kind), seed + i);
    const outcome = await play(schedule, { onlyHistory });
    played++;
    calls += outcome.calls;
    granted += outcome.granted;
    operations += outcome.operations;
    states += outcome.states;
    hash = outcome.hash;
    if (outcome.failure === undefined) continue;
    const shortest = isShort
      ? schedule
      : await shrink(schedule, async (tried) => (await play(tried, { onlyHistory })).failure);
    const finding: Finding = { kind: schedule.kind, seed: seed + i, failure: outcome.failure, shortest };
    process.send?.({ finding });
    if (isShort) break;
  }
  process.send?.({ done: { played, calls, granted, operations, states, hash } });
}

void run(JSON.parse(process.argv[2] ?? "{}") as Job).then(() => process.disconnect());
