/**
 * Plays a calm schedule: each step when all that the one before has caused is done. So an oracle, a small state machine
 * of the contract, knows the outcome of every call. Where the contract leaves a choice, each of its choices is right.
 */
import { AsyncResource } from "node:async_hooks";
import { isLockError, type LockClient } from "../../../src/index.js";
import { Journal } from "../journal.js";
import { NAME, Process } from "../process.js";
import type { Schedule } from "../schedule.js";
import type { Outcome } from "../simulation.js";
import { rest, ServerClock, World } from "../world.js";
import type { Owner, Side } from "./holds.js";
import { CalmServer } from "./server.js";
import { type CalmSchedule, type CalmStep, CLIENTS } from "./steps.js";

export const WATCHDOG = 30_000;
const POLL_CAP = 16_000;
const COMMAND_TIMEOUT = 3_000;
/** Milliseconds by which a waiter that wakes by itself may be later than it planned. */
const JITTER = 60;
/** Milliseconds for which a process may let others go first, before it takes what is free. */
const COURTESY = 60;
/** Milliseconds without a check before and after each moment at which something is due. */
const CLEARANCE = 100;
/** Turns of the event loop that an answer may take. */
const MOST_TURNS = 10;
/** Milliseconds by which a call is late whose command was sent again. */
const LATE = 60;
/** Milliseconds after which the last marker has expired. */
const MARKERS = 62_000;

const ABORTED = new Error("aborted by the schedule");

/** A call that wants a hold. */
export interface Call {
  readonly serial: number;
  readonly owner: Owner;
  readonly side: Side;
  /** Milliseconds; absent for a hold that the watchdog renews. */
  readonly lease: number | undefined;
  /** Whether its owner has only read holds, and asks for the write side. */
  readonly isUpgrade: boolean;
  readonly client: number;
  /** Milliseconds; 0: a single try; Infinity: for ever. */
  readonly wait: number;
  readonly begun: number;
  readonly controller: AbortController;
  isPending: boolean;
}

export abstract class Course {
  protected readonly world: World = new World();
  protected readonly server: CalmServer;
  protected readonly closed: Set<number> = new Set();
  /** How imprecise the time of an answer may be, in milliseconds. */
  slack = 2;
  readonly #schedule: CalmSchedule;
  readonly #journal: Journal;
  readonly #processes: readonly Process[];
  readonly #calls: Call[] = [];
  readonly #seen = new Set<string>();
  /** Until then something may be free while calls wait, because no message told of it. */
  #quietUntil = 0;
  #granted = 0;
  #unanswered = 0;
  #checks = 0;
  #failure: string | undefined;

  constructor(schedule: CalmSchedule, isRead: boolean) {
    this.#schedule = schedule;
    this.#journal = new Journal(isRead);
    this.server = new CalmServer(new ServerClock(this.world), (text) => this.tell(text));
    const world: Schedule = {
      ...{ kind: "lock", seed: schedule.seed, rates: Array(CLIENTS).fill(1), permits: 0, steps: [] },
      ...{ watchdogTimeout: WATCHDOG, pollCap: POLL_CAP, commandTimeout: COMMAND_TIMEOUT },
      weather: { least: 0, most: 0, late: 0, latest: 0 },
    };
    this.#processes = world.rates.map((_, i) => new Process(this.world, [this.server], world, i));
    const failed = ({ cause }: { cause: unknown }) =>
      this.fail(`an event tells of an error: ${String(cause)}`);
    for (const { client } of this.#processes) client.on("error", failed);
  }

  // What the locks say

  /** Makes the call of a step. False if there is nothing that it could be about. */
  protected abstract act(step: CalmStep): boolean;
  /** Whether there is what the call wants. */
  protected abstract isFree(call: Call): boolean;
  /** Whether the other call, which waits, has to be granted first. */
  protected abstract goesBefore(other: Call, call: Call): boolean;
  /** Whether the call may wait only because the other one does. */
  protected abstract holdsUp(other: Call, call: Call): boolean;
  /** Where the clients and the server at rest say something else than the oracle. `turn` rises by one each time. */
  protected abstract differences(turn: number): Promise<string[]>;
  /** Gives back what the schedule has got. */
  protected abstract ending(): void;
  /** Keys that stay without TTL. */
  protected abstract lasts(key: string): boolean;
  protected abstract closing(client: number): void;
  protected abstract atRest(): void;
  /** Moments at which a deadline or a renewal is due. */
  protected abstract get due(): number[];

  // The schedule

  async play(): Promise<Outcome> {
    try {
      for (const step of this.#schedule.steps) {
        if (this.#failure === undefined && (await this.#take(step))) await this.#check();
      }
      if (this.#failure === undefined) await this.#end();
    } catch (error) {
      this.fail(`the schedule ends with ${String((error as Error).stack)}`);
    }
    let closed = 0;
    for (const { client } of this.#processes) void client.close({ timeout: 0 }).then(() => closed++);
    await this.world.runUntil(this.world.now + MARKERS, () => closed === CLIENTS);
    const { hash, lines } = this.#journal;
    const counts = { calls: this.#calls.length, granted: this.#granted, operations: 0, states: 0 };
    return { failure: this.#failure, hash, lines, ...counts, seen: [...this.#seen] };
  }

  async #take(step: CalmStep): Promise<boolean> {
    if (step.do === "abort") return this.#abort(pick(this.waiting, step.place));
    if (step.do === "close") return this.#close(step.client);
    if (step.do === "pass") return this.#pass(step.ms);
    // A forced unlock that is late may take what a waiter has got meanwhile.
    const lost = step.do === "force" ? undefined : step.lost;
    if (lost && !this.#isNear(this.now + LATE, CLEARANCE + LATE))
      this.server.fault = { what: lost, drop: () => this.#drop() };
    const isArmed = this.server.fault !== undefined;
    const calls = this.#calls.length;
    // Each in an async context of its own, as the tasks of a program are.
    const isDone = new AsyncResource("step").runInAsyncScope(() => this.act(step));
    await rest();
    if (step.hasty && this.#calls[calls]?.isPending) this.#abort(this.#calls[calls]);
    await this.settle();
    if (isArmed && !this.server.fault) {
      this.note(`the ${lost} is lost`, "sent again");
      this.slack = LATE;
      await this.world.runUntil(this.now + 2 * LATE);
    }
    this.server.fault = undefined;
    return isDone;
  }

  /** All connections are lost, and are made again. */
  #drop(): void {
    for (const { networks } of this.#processes) networks[0]?.drop(() => true);
  }

  #abort(call: Call | undefined): boolean {
    if (!call) return false;
    this.note(`call ${this.#calls.indexOf(call)} is aborted`);
    call.controller.abort(ABORTED);
    return true;
  }

  async #close(client: number): Promise<boolean> {
    if (this.closed.has(client)) return false;
    this.note(`client ${client} closes`);
    this.closed.add(client);
    this.closing(client);
    await this.answer("close()", this.clientOf(client).close({ timeout: 0 }));
    return true;
  }

  async #pass(ms: number): Promise<boolean> {
    let end = this.now + ms;
    while (this.#isNear(end)) end += CLEARANCE;
    this.note(`${end - this.now} ms pass`);
    await this.world.runUntil(end);
    return true;
  }

  /** Whether something due then may or may not have happened, so that no check can be made. */
  #isNear(time: number, clearance = CLEARANCE): boolean {
    const waits = this.waiting.map(({ begun, wait }) => begun + wait);
    const moments = [...waits, this.#quietUntil, ...this.due];
    return moments.some((moment) => Math.abs(moment - time) < clearance);
  }

  /** Gives up all calls, and gives back everything: nothing may be left of them. */
  async #end(): Promise<void> {
    for (const call of this.waiting) this.#abort(call);
    this.ending();
    await this.#check();
    await this.world.runUntil(this.now + MARKERS);
    const left = this.server.keys.scan(0, 100).keys.filter((key) => !this.lasts(key));
    if (left.length > 0) this.fail(`Redis has still ${left.join(", ")}`);
    for (const [channel, count] of this.server.listeners)
      if (count > 0) this.fail(`somebody listens to ${channel}`);
  }

  // Checks

  async #check(): Promise<void> {
    await this.settle();
    if (this.waiting.some((call) => this.#isAsleep(call))) await this.world.runUntil(this.now + COURTESY);
    this.atRest();
    for (const call of this.waiting) {
      const name = `call ${this.#calls.indexOf(call)}`;
      if (call.controller.signal.aborted || this.closed.has(call.client)) this.fail(`${name} was not ended`);
      if (this.#isOverdue(call)) this.fail(`${name} outlives its wait`);
      if (this.#isAsleep(call)) this.fail(`${name} is left asleep`);
    }
    if (this.#unanswered > 0) this.fail("a call is not answered");
    for (const key of this.server.keys.scan(0, 100).keys) {
      const ttl = this.server.keys.ttl(key);
      if (ttl < 0 && !this.lasts(key)) this.fail(`${key} has no TTL`);
    }
    for (const difference of await this.differences(this.#checks++)) this.fail(difference);
  }

  /** Resolves when nothing happens any more until time passes. */
  protected async settle(): Promise<void> {
    await rest();
    await this.world.runUntil(this.now);
  }

  /** An answer that needs no time. */
  protected async answer<T>(what: string, asked: Promise<T>): Promise<T> {
    let isAnswered = false;
    const answered = asked.finally(() => {
      isAnswered = true;
    });
    answered.catch(() => {});
    for (let turns = 0; turns < MOST_TURNS && !isAnswered; turns++) await this.settle();
    if (!isAnswered) throw new Error(`${what} is not answered`);
    return answered;
  }

  #isAsleep(call: Call): boolean {
    if (!this.isFree(call) || this.now < this.#quietUntil) return false;
    return !this.waiting.some((other) => other !== call && this.holdsUp(other, call));
  }

  // Calls

  /** Makes a call that may have to wait; it resolves with what it got, or false for nothing. */
  protected wait<T>(what: string, call: Call, made: Promise<T | false>, granted: (value: T) => void): true {
    const name = `call ${this.#calls.push(call) - 1}`;
    this.note(`${name}: client ${call.client}.${what}`);
    const ended = (outcome: string) => {
      this.note(`${name}: ${outcome}`, outcome);
      this.#settles(call);
      if (!this.#mayEnd(call, outcome)) this.fail(`${name} ends with ${outcome} without a reason`);
    };
    made.then(
      (value) => {
        if (value === false) return ended("nothing");
        this.#granted++;
        this.note(`${name}: granted`, call.begun < this.now ? "waited" : "granted");
        this.#judgeGrant(name, call);
        granted(value);
      },
      (error: unknown) => ended(codeOf(error)),
    );
    return true;
  }

  /** Makes a call that is answered at once, with one of these outcomes. */
  protected expect(what: string, made: Promise<unknown>, ...expected: readonly unknown[]): true {
    this.#unanswered++;
    this.note(what);
    const settled = (outcome: string) => {
      this.#unanswered--;
      this.note(`${what}: ${outcome}`, outcome);
      if (expected.every((each) => outcome !== String(each)))
        this.fail(`${what} answers ${outcome}, not ${expected.join(" or ")}`);
    };
    made.then(
      (value) => settled(String(value ?? "ok")),
      (error: unknown) => settled(codeOf(error)),
    );
    return true;
  }

  #judgeGrant(name: string, call: Call): void {
    this.#settles(call);
    if (!this.isFree(call)) this.fail(`${name} is granted what is not free`);
    if (call.controller.signal.aborted) this.fail(`${name} is granted after its abort`);
    if (this.closed.has(call.client)) this.fail(`${name} is granted by a closed client`);
    if (call.wait > 0 && this.#isOverdue(call)) this.fail(`${name} is granted after its wait`);
    const first = this.waiting.find((other) => {
      return !other.controller.signal.aborted && !this.#isOverdue(other) && this.goesBefore(other, call);
    });
    if (first) this.fail(`${name} is granted before call ${this.#calls.indexOf(first)}`);
  }

  #mayEnd(call: Call, outcome: string): boolean {
    if (outcome === "aborted") return call.controller.signal.aborted;
    if (outcome === "CLIENT_CLOSED") return this.closed.has(call.client);
    if (outcome === "UPGRADE_REFUSED") return call.isUpgrade;
    if (outcome !== "nothing" && outcome !== "WAIT_TIMEOUT") return false;
    if (call.wait > 0) return this.#isOverdue(call);
    return !this.isFree(call) || this.waiting.some((other) => this.holdsUp(other, call));
  }

  #isOverdue({ begun, wait }: Call): boolean {
    return begun + wait <= this.now;
  }

  #settles(call: Call): void {
    if (!call.isPending) this.fail("a call is settled twice");
    call.isPending = false;
  }

  // For the locks

  get now(): number {
    return this.world.now;
  }

  /** The waiting calls, in their order. */
  protected get waiting(): Call[] {
    return this.#calls.filter(({ isPending }) => isPending);
  }

  /** An open client, if possible this one. */
  protected open(client: number): number | undefined {
    return [client, ...Array(CLIENTS).keys()].find((each) => !this.closed.has(each));
  }

  protected clientOf(client: number): LockClient {
    return (this.#processes[client] as Process).client;
  }

  protected ownerOf(client: number, n: number): ReturnType<Process["owner"]> {
    return (this.#processes[client] as Process).owner(n);
  }

  /** Whether connections have been lost. */
  protected get isDisturbed(): boolean {
    return this.slack === LATE;
  }

  /** Something becomes free without a message: its waiters find it by themselves. */
  protected quiet(since: number = this.now): void {
    this.#quietUntil = Math.max(this.#quietUntil, since + POLL_CAP + JITTER + this.slack);
  }

  protected tell(text: string): void {
    this.#journal.write(this.now, text);
  }

  protected note(text: string, seen?: string): void {
    this.tell(text);
    if (seen !== undefined) this.#seen.add(seen);
  }

  fail(text: string): void {
    this.tell(`FAILED ${text}`);
    this.#failure ??= text;
  }
}

function codeOf(error: unknown): string {
  if (error === ABORTED) return "aborted";
  return isLockError(error) ? error.code : String(error);
}

export function compare(what: string, actual: unknown, expected: unknown): string[] {
  return actual === expected ? [] : [`${what} is ${actual}, not ${expected}`];
}

export function within(what: string, actual: number, least: number, most: number): string[] {
  return actual >= least && actual <= most ? [] : [`${what} is ${actual}, not between ${least} and ${most}`];
}

/** The element at this place; after the last one the list starts again. */
export function pick<T>(list: readonly T[], place: number): T | undefined {
  return list[place % list.length];
}

export { NAME };
