/** The bundled part of a contention run: processes that take one group of locks again and again, in virtual time. */
import { MultiLock, RedLock } from "../../src/index.js";
import { Random } from "../support/random.js";
import { TracedServer } from "./journal.js";
import { Process } from "./process.js";
import type { Schedule, Weather } from "./schedule.js";
import { ServerClock, World } from "./world.js";

/** All times are milliseconds. */
export interface Load {
  readonly kind: "red" | "multi";
  /** For each process, the number of workers that take the lock in a loop. */
  readonly workers: readonly number[];
  /** How long each hold lasts. */
  readonly hold: number;
  readonly weather: Weather;
  /** A connection of some process is dropped each time this long is over; 0: never. */
  readonly drops: number;
  readonly time: number;
  readonly seed: number;
}

export interface Figures {
  /** The number of holds of each process. */
  readonly holds: readonly number[];
  readonly waits: readonly number[];
  readonly commands: number;
}

const MASTERS = 3;
/** The number of members of a MultiLock, and the number of locks they are chosen from. */
const [CHOSEN, MEMBERS] = [3, 6];

class Contention {
  readonly #load: Load;
  readonly #world = new World();
  readonly #random: Random;
  readonly #processes: readonly Process[];
  readonly #holds: number[];
  readonly #waits: number[] = [];
  #commands = 0;
  #unsettled = 0;

  constructor(load: Load) {
    const { seed, weather, workers } = load;
    this.#load = load;
    this.#random = new Random(seed);
    this.#holds = workers.map(() => 0);
    const servers = Array.from(
      { length: load.kind === "red" ? MASTERS : 1 },
      () => new TracedServer(new ServerClock(this.#world), () => this.#commands++),
    );
    const rates = workers.map(() => 1);
    const schedule: Schedule = {
      ...{ kind: load.kind, seed, weather, rates, permits: 0, steps: [] },
      ...{ watchdogTimeout: 30_000, pollCap: 3_000, commandTimeout: 3_000 },
    };
    this.#processes = workers.map((_, i) => new Process(this.#world, servers, schedule, i));
  }

  async run(): Promise<Figures> {
    const { workers, time, drops } = this.#load;
    for (const { machine } of this.#processes) machine.phase = this.#random.next();
    for (const [i, process] of this.#processes.entries()) {
      for (let worker = 0; worker < (workers[i] as number); worker++) {
        this.#unsettled++;
        this.#world.at(this.#random.next() * 10, () => void process.run(() => this.#work(process)));
      }
    }
    for (let at = drops; drops > 0 && at < time; at += drops) this.#world.at(at, () => this.#drop());
    await this.#world.runUntil(2 * time + 60_000, () => this.#unsettled === 0);
    if (this.#unsettled > 0) throw new Error(`${this.#unsettled} workers still wait`);
    return { holds: this.#holds, waits: this.#waits, commands: this.#commands };
  }

  /** Takes the group, keeps it and gives it back, until the time is over. */
  async #work(process: Process): Promise<void> {
    const { kind, hold, time } = this.#load;
    while (this.#world.now < time) {
      const lock =
        kind === "red"
          ? new RedLock(...process.clients.map((client) => client.getLock("job")))
          : new MultiLock(...this.#chosen().map((name) => process.client.getLock(name)));
      const begun = this.#world.now;
      const taken = await lock.lock({ lease: 60_000 });
      this.#waits.push(this.#world.now - begun);
      this.#holds[process.index] = (this.#holds[process.index] as number) + 1;
      await process.machine.sleep(hold);
      await taken.unlock();
    }
    this.#unsettled--;
  }

  #chosen(): readonly string[] {
    const names = Array.from({ length: MEMBERS }, (_, i) => `job-${i}`);
    return Array.from(
      { length: CHOSEN },
      () => names.splice(this.#random.below(names.length), 1)[0] as string,
    );
  }

  #drop(): void {
    const process = this.#processes[this.#random.below(this.#processes.length)] as Process;
    const network = process.networks[this.#random.below(process.networks.length)];
    network?.drop(() => true);
  }
}

async function main(): Promise<void> {
  const load = JSON.parse(process.argv[2] as string) as Load;
  const random = new Random(load.seed ^ 0x27d4eb2f);
  Math.random = () => random.next();
  const figures = await new Contention(load).run();
  process.send?.(figures, () => process.exit(0));
}

void main();
