/** Promises for the end: every call ends, and nothing is left of any. */
import { type Call, MEMBERS, NAME } from "./process.js";
import { isLocked, isNumber, LEASES, permitsFree } from "./server-view.js";
import type { Simulation } from "./simulation.js";

/**
 * Milliseconds for the late last bytes of a lost connection, and for the pauses of ioredis and this library before they
 * try again.
 */
const PAUSES = 2_500;

const QUEUE = ["redisson_lock_queue", "redisson_lock_timeout", "holdfast_alive"].map(
  (key) => `${key}:{${NAME}}`,
);

export class EndChecks {
  readonly #simulation: Simulation;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  /** Milliseconds after the last call in which the library has given back everything that no owner has. */
  get cleanUpTime(): number {
    const { commandTimeout, weather } = this.#simulation.schedule;
    const { most, latest } = weather;
    return 2 * commandTimeout + 4 * Math.max(most, latest) + PAUSES;
  }

  unsettled(): void {
    const { calls, schedule, processes } = this.#simulation;
    // Permits that dead processes have taken are never given back, so calls may wait for ever.
    if (schedule.kind === "semaphore" && processes.some(({ machine }) => machine.isDead)) return;
    const open = calls.filter(({ settled, process }) => settled === undefined && !process.machine.isDead);
    const who = open.map(({ whose }) => whose).join(", ");
    this.#simulation.fail(`calls never end: ${who || "one that gives back"}`);
  }

  /** All owners have given back their holds: what is still there belongs to a dead process, or was unknown to all. */
  nothingHeld(): void {
    const { schedule, processes, losses } = this.#simulation;
    // A replica that takes over may still have holds that were given back since.
    if (losses.length > 0) return;
    if (isNumber(this.#simulation)) return this.#numberLeft();
    if (processes.some(({ machine }) => machine.isDead)) return;
    for (const lock of schedule.kind === "multi" ? MEMBERS : [NAME]) {
      if (isLocked(this.#simulation, lock))
        this.#simulation.fail(`${lock} is still locked, and nobody has it`);
    }
  }

  /** All permits are free again, except those of dead processes. */
  #numberLeft(): void {
    const { schedule, stays, calls } = this.#simulation;
    const ofDead = ({ process }: Call) => process.machine.isDead;
    const most = calls.filter(
      (call) => ofDead(call) && !stays.some((stay) => stay.call === call && stay.isDone),
    ).length;
    const free = permitsFree(this.#simulation);
    if (free > schedule.permits || free < schedule.permits - most)
      this.#simulation.fail(`${free} of ${schedule.permits} permits are free, and the dead have ${most}`);
  }

  nothingLeft(): void {
    const { servers, schedule, processes, losses } = this.#simulation;
    const hasDead = processes.some(({ machine }) => machine.isDead);
    const stays = [`redisson_lock_token:{${NAME}}`];
    // Only the next try removes a place in a queue, even of a call that is over, if a replica still had the place.
    if ((hasDead || losses.length > 0) && schedule.kind === "fair") stays.push(...QUEUE);
    if (isNumber(this.#simulation)) stays.push(NAME, ...(hasDead ? [LEASES] : []));
    for (const { keys } of servers) {
      const left = keys.scan(0, 100).keys.filter((key) => !stays.includes(key));
      if (left.length > 0) this.#simulation.fail(`Redis has still ${left.join(", ")}`);
    }
  }
}
