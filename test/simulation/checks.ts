/** Promises that hold whatever happens, checked after each event. */

import type { Hold } from "../../src/index.js";
import { type Call, MEMBERS, NAME, type Stay } from "./process.js";
import { isLocked, isNumber, permitsFree } from "./server-view.js";
import type { Simulation } from "./simulation.js";

/** Milliseconds after its deadline within which a hold is told of it. */
const TOLD = 20;

/** Milliseconds: the second for which a process lets others go first at most, and as much again. */
const LONGEST_PAUSE = 2_000;

export class Checks {
  readonly #simulation: Simulation;
  /** For each waiting call: since when it could have had what it waits for. */
  readonly #could = new Map<Call, number>();
  #highest = 0n;
  #seen = 0;
  /** For each hold: since when the server has nothing of it, although the process could learn of that. */
  readonly #forgotten = new Map<Stay, number>();
  /** Since when calls wait and nobody is inside. */
  #idleSince: number | undefined;
  /** For each hold: since when it is over. */
  readonly #over = new Map<Stay, number>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  /** Whether there are no faults, and nothing is slow. */
  get #isCalm(): boolean {
    const { steps, commandTimeout, watchdogTimeout } = this.#simulation.schedule;
    return (
      steps.every((step) => step.do === "take") &&
      4 * this.#slowest < Math.min(commandTimeout, watchdogTimeout / 3)
    );
  }

  /** The most milliseconds that bytes travel. */
  get #slowest(): number {
    const { most, latest } = this.#simulation.schedule.weather;
    return Math.max(most, latest);
  }

  /** A `wait` may end while an answer travels so long that Redis counts as away (`docs/guide.md#unavailable`). */
  #seemsAway({ step: { wait = 0 } }: Call): boolean {
    return wait > 0 && 2 * this.#slowest >= this.#simulation.schedule.commandTimeout / 10;
  }

  /** A call ended with an error of this library; `code` is undefined for an abort. */
  failed(call: Call, code: string | undefined): void {
    const { wait = this.#slowest * 4 } = call.step;
    if (code === "UNAVAILABLE" && this.#isCalm && !this.#seemsAway(call) && wait >= this.#slowest * 4)
      this.#simulation.fail(`a call of ${call.whose} is UNAVAILABLE, and Redis answers`);
    const keepsAll = call.step.lease === undefined;
    if (code === "LOCK_LOST" && this.#isCalm && keepsAll && call.step.extend === undefined)
      this.#simulation.fail(`a hold of ${call.whose} is lost, and nothing has happened`);
  }

  /** A fair lock is granted in the order of first tries. */
  #order(stay: Stay): void {
    const { schedule, calls } = this.#simulation;
    if (schedule.kind !== "fair" || !this.#isCalm) return;
    const { invoked, whose } = stay.call;
    for (const other of calls) {
      const { step, settled } = other;
      if (settled !== undefined || step.wait !== undefined || step.abort !== undefined) continue;
      if (/owner/.test(whose + other.whose) || other.invoked + 6 * this.#slowest > invoked) continue;
      this.#simulation.fail(`${nameOf(stay)} overtakes that of ${other.whose}, called at ${other.invoked}`);
    }
  }

  atRest(): void {
    this.#exclusion();
    this.#tokens();
    this.#told();
    this.#waiting();
    this.#idle();
  }

  #exclusion(): void {
    const { stays, world } = this.#simulation;
    const held = stays.filter((stay) => stay.leftAt === undefined && stay.heldUntil === world.now);
    if (isNumber(this.#simulation)) return this.#permits(held.length);
    for (const [i, a] of held.entries()) {
      for (const b of held.slice(i + 1)) {
        if (this.#excludes(a, b) && !this.#wasForgotten(a, b)) {
          this.#simulation.fail(`two holders: ${nameOf(a)} and ${nameOf(b)}`);
        }
      }
      this.#onServer(a);
    }
  }

  #permits(held: number): void {
    const { schedule, losses } = this.#simulation;
    if (held > schedule.permits && losses.length === 0)
      this.#simulation.fail(`${held} have one of ${schedule.permits} permits`);
  }

  #excludes({ call: a }: Stay, { call: b }: Stay): boolean {
    if (a.whose === b.whose || (a.step.shared && b.step.shared)) return false;
    const { members } = b.step;
    return !members || (a.step.members ?? []).some((member) => members.includes(member));
  }

  /**
   * Whether the server lost data after the first call (for a group, after either call) and before the second grant, or a
   * lock was taken away after either call: who is stalled may learn of its grant behind the one who came after it.
   */
  #wasForgotten(a: Stay, b: Stay): boolean {
    const { losses, thefts } = this.#simulation;
    const either = Math.min(a.call.invoked, b.call.invoked);
    const since = b.call.step.members ? either : a.call.invoked;
    const isBetween = (from: number) => (at: number) => from <= at && at <= b.granted;
    return losses.some(isBetween(since)) || thefts.some(isBetween(either));
  }

  /** What a process believes to hold, the server has; if the server has lost it, the next renewal tells. */
  #onServer(stay: Stay): void {
    const { schedule, losses, thefts, world } = this.#simulation;
    const { call } = stay;
    if (!stay.hold || schedule.kind === "red") return;
    const lacking = this.#lacking(stay);
    const isReachable =
      !call.process.machine.isStalled && call.process.networks.every((each) => each.isReachable);
    if (lacking === undefined || !isReachable) {
      this.#forgotten.delete(stay);
      return;
    }
    const since = this.#forgotten.get(stay) ?? world.now;
    this.#forgotten.set(stay, since);
    const isForgiven =
      [...losses, ...thefts].some((at) => at >= call.invoked) &&
      (call.step.lease !== undefined || world.now - since < this.#renewal);
    if (!isForgiven)
      this.#simulation.fail(`${nameOf(stay)} believes to hold ${lacking}, and Redis has nothing of it`);
  }

  #lacking({ hold, call }: Stay): string | undefined {
    const { servers, schedule } = this.#simulation;
    const members = (hold && "members" in hold ? hold.members : [hold]) as Hold[];
    return members.find(({ lockName, ownerId }) => {
      const field = schedule.kind === "readwrite" && !call.step.shared ? `${ownerId}:write` : ownerId;
      return !servers[0]?.keys.get(lockName, "hash")?.has(field);
    })?.lockName;
  }

  /** Milliseconds within which a renewal is sent and answered, whatever happened before. */
  get #renewal(): number {
    const { watchdogTimeout, commandTimeout } = this.#simulation.schedule;
    return (2 / 3) * watchdogTimeout + commandTimeout + 4 * this.#slowest + 100;
  }

  #tokens(): void {
    for (const stay of this.#simulation.stays.slice(this.#seen)) {
      this.#seen++;
      const { token } = stay;
      this.#order(stay);
      if (token === undefined) continue;
      const isNested = this.#simulation.stays.some(
        (other) => other !== stay && other.token === token && other.call.whose === stay.call.whose,
      );
      // Of a grant that was taken away before its process learnt of it, a later one may be known.
      const { call, granted } = stay;
      const isTaken = this.#simulation.thefts.some((at) => call.invoked <= at && at <= granted);
      if (token <= this.#highest && !isNested && !isTaken)
        this.#simulation.fail(`${nameOf(stay)} has an old token`);
      if (token > this.#highest) this.#highest = token;
    }
  }

  /** The owner of a lost hold is told of the loss in time. */
  #told(): void {
    const { stays, world } = this.#simulation;
    for (const stay of stays) {
      const { hold, call, leftAt } = stay;
      if (!hold || !call.step.watched || leftAt !== undefined) continue;
      if (hold.signal.aborted && hold.isHeld)
        this.#simulation.fail(`${nameOf(stay)} is held, and told as lost`);
      if (hold.isHeld || hold.signal.aborted || call.process.machine.isStalled) {
        this.#over.delete(stay);
        continue;
      }
      const since = this.#over.get(stay) ?? world.now;
      this.#over.set(stay, since);
      if (world.now - since > TOLD)
        this.#simulation.fail(`${nameOf(stay)} is over, and its signal does not fire`);
    }
  }

  /** No call waits longer than documented for something that is free. */
  #waiting(): void {
    const { calls, world, schedule } = this.#simulation;
    const { pollCap, commandTimeout } = schedule;
    // A waiter that cannot be reached, or that a replica still knows, keeps its place for three times `pollCap`.
    const silent = schedule.steps.filter((step) => /^(crash|cut|stall|failover)$/.test(step.do)).length;
    // If the network is slower than the client's time-out, most tries are answered, but not all.
    const unheard = 2 * this.#slowest >= commandTimeout ? 4 : 0;
    const bound = pollCap * (1 + unheard + 4 * silent) + 2 * commandTimeout + 6 * this.#slowest + 500;
    for (const call of calls) {
      if (call.settled !== undefined || !this.#isFree(call)) {
        this.#could.delete(call);
        continue;
      }
      const since = this.#could.get(call) ?? world.now;
      this.#could.set(call, since);
      if (world.now - since > bound)
        this.#simulation.fail(`a call of ${call.whose} waits for what has been free for ${bound} ms`);
    }
  }

  /** Without faults somebody is woken as soon as nobody is inside any more, however rarely waiters poll. */
  #idle(): void {
    const { calls, schedule, stays, world } = this.#simulation;
    const waiting = calls.filter(({ settled }) => settled === undefined);
    // A lease that half a round trip may outlast is rarely granted in time; others of the process wait behind such a call.
    const isHopeless = waiting.some(
      ({ step: { lease } }) => lease !== undefined && lease < schedule.weather.most,
    );
    if (
      !this.#isCalm ||
      waiting.length === 0 ||
      isHopeless ||
      stays.some(({ overAt }) => overAt === undefined)
    ) {
      this.#idleSince = undefined;
      return;
    }
    this.#idleSince ??= world.now;
    if (world.now - this.#idleSince > LONGEST_PAUSE + 20 * this.#slowest)
      this.#simulation.fail(`calls wait, and nobody has been inside since ${this.#idleSince}`);
  }

  #isFree({ process, step }: Call): boolean {
    const { machine, networks } = process;
    if (machine.isStalled || networks.some(({ isReachable }) => !isReachable)) return false;
    if (isNumber(this.#simulation)) return permitsFree(this.#simulation) > 0;
    return this.#locksOf(step.members).every((lock) => !isLocked(this.#simulation, lock));
  }

  #locksOf(members: readonly number[] | undefined): readonly string[] {
    return members?.map((member) => MEMBERS[member] as string) ?? [NAME];
  }
}

function nameOf({ call, granted }: Stay): string {
  return `the hold of ${call.whose} (called at ${call.invoked}, granted at ${granted})`;
}
