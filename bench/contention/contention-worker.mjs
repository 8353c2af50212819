/** The bundled part of a contention run: processes that take one group of locks again and again, in virtual time. */
import { MultiLock, RedLock } from "../../src/index.ts";
import { TracedServer } from "../../test/simulation/journal.ts";
import { Process } from "../../test/simulation/process.ts";
import { ServerClock, World } from "../../test/simulation/world.ts";
import { Random } from "../../test/support/random.ts";

/**
 * All times are milliseconds.
 *
 * @typedef {object} Load
 * @property {"red" | "multi"} kind
 * @property {number[]} workers for each process, the number of workers that take the lock in a loop
 * @property {number} hold how long each hold lasts
 * @property {import("../../test/simulation/schedule.ts").Weather} weather
 * @property {number} drops a connection of some process is dropped each time this long is over; 0: never
 * @property {number} time
 * @property {number} seed
 */

const MASTERS = 3;
/** The number of members of a MultiLock, and the number of locks they are chosen from. */
const [CHOSEN, MEMBERS] = [3, 6];

class Contention {
  #load;
  #world = new World();
  #random;
  #processes;
  #holds;
  #waits = [];
  #commands = 0;
  #unsettled = 0;

  /** @param {Load} load */
  constructor(load) {
    const { seed, weather, workers } = load;
    this.#load = load;
    this.#random = new Random(seed);
    this.#holds = workers.map(() => 0);
    const servers = Array.from(
      { length: load.kind === "red" ? MASTERS : 1 },
      () => new TracedServer(new ServerClock(this.#world), () => this.#commands++),
    );
    const rates = workers.map(() => 1);
    const schedule = {
      ...{ kind: load.kind, seed, weather, rates, permits: 0, steps: [] },
      ...{ watchdogTimeout: 30_000, pollCap: 3_000, commandTimeout: 3_000 },
    };
    this.#processes = workers.map((_, i) => new Process(this.#world, servers, schedule, i));
  }

  /** The number of holds of each process, how long each call waited, and the number of commands. */
  async run() {
    const { workers, time, drops } = this.#load;
    for (const { machine } of this.#processes) machine.phase = this.#random.next();
    for (const [i, process] of this.#processes.entries()) {
      for (let worker = 0; worker < workers[i]; worker++) {
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
  async #work(process) {
    const { kind, hold, time } = this.#load;
    while (this.#world.now < time) {
      const lock =
        kind === "red"
          ? new RedLock(...process.clients.map((client) => client.getLock("job")))
          : new MultiLock(...this.#chosen().map((name) => process.client.getLock(name)));
      const begun = this.#world.now;
      const taken = await lock.lock({ lease: 60_000 });
      this.#waits.push(this.#world.now - begun);
      this.#holds[process.index] = this.#holds[process.index] + 1;
      await process.machine.sleep(hold);
      await taken.unlock();
    }
    this.#unsettled--;
  }

  #chosen() {
    const names = Array.from({ length: MEMBERS }, (_, i) => `job-${i}`);
    return Array.from({ length: CHOSEN }, () => names.splice(this.#random.below(names.length), 1)[0]);
  }

  #drop() {
    const process = this.#processes[this.#random.below(this.#processes.length)];
    const network = process.networks[this.#random.below(process.networks.length)];
    network?.drop(() => true);
  }
}

async function main() {
  const load = JSON.parse(process.argv[2]);
  const random = new Random(load.seed ^ 0x27d4eb2f);
  Math.random = () => random.next();
  const figures = await new Contention(load).run();
  process.send?.(figures, () => process.exit(0));
}

void main();
