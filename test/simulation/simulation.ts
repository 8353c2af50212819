/**
 * Plays a schedule: real clients and the real Lua in virtual time. One seed decides everything, so a schedule happens
 * in the same way each time (deterministic simulation, as FoundationDB and TigerBeetle test).
 */
import type { Keyspace } from "../../src/entries/testing/keyspace.js";
import type { MemoryServer } from "../../src/entries/testing/memory-server.js";
import { isLockError } from "../../src/index.js";
import { Checks } from "./checks.js";
import { EndChecks } from "./end-checks.js";
import { judge, refutationOf } from "./history.js";
import { isForce, Journal, TracedServer } from "./journal.js";
import { type Call, MEMBERS, NAME, Process, type Stay } from "./process.js";
import type { Fault, Schedule, Take } from "./schedule.js";
import { ServerClock, World } from "./world.js";

/** Milliseconds to wait for calls that never end, after everything that may hold them up. */
const PATIENCE = 60_000;
/** Milliseconds after which the last marker has expired. */
const MARKERS = 62_000;
/** Milliseconds that a client may take to close. */
const CLOSING = 60_000;

export interface Outcome {
  /** The first failure. */
  readonly failure: string | undefined;
  /** The hash of everything that happened. */
  readonly hash: string;
  readonly lines: readonly string[] | undefined;
  readonly calls: number;
  readonly granted: number;
  /** The operations of the history, and the states that were searched to put them in order. */
  readonly operations: number;
  readonly states: number;
}

export interface Manner {
  /** Whether the journal will be read. */
  readonly isRead?: boolean;
  /** The only check is whether the history is linearizable. */
  readonly onlyHistory?: boolean | undefined;
}

export class Simulation {
  readonly schedule: Schedule;
  readonly world: World = new World();
  readonly servers: readonly MemoryServer[];
  readonly processes: readonly Process[];
  readonly calls: Call[] = [];
  readonly stays: Stay[] = [];
  /** The moments at which data was lost, and those at which a lock was taken from its holder. */
  readonly losses: number[] = [];
  readonly thefts: number[] = [];
  /** After this time no fault is at work. */
  faultsEnd = 0;
  failure: string | undefined;
  readonly #journal: Journal;
  readonly #checks = new Checks(this);
  readonly #onlyHistory: boolean;
  #unsettled = 0;
  /** When the first server is back, also if outages overlap. */
  #awayUntil = 0;

  constructor(schedule: Schedule, { isRead = false, onlyHistory = false }: Manner = {}) {
    this.schedule = schedule;
    this.#onlyHistory = onlyHistory;
    this.#journal = new Journal(isRead);
    const count = schedule.kind === "red" ? 3 : 1;
    this.servers = Array.from({ length: count }, (_, i) => {
      return new TracedServer(new ServerClock(this.world), (text, command) => {
        this.tell(`server ${i}: ${text}`);
        if (isForce(command)) this.thefts.push(this.world.now);
      });
    });
    this.processes = schedule.rates.map((_, i) => new Process(this.world, this.servers, schedule, i));
  }

  tell(text: string): void {
    this.#journal.write(this.world.now, text);
  }

  fail(text: string): void {
    this.failure ??= text;
    this.tell(`FAILED ${text}`);
  }

  async play(): Promise<Outcome> {
    const { world, schedule } = this;
    const ends = new EndChecks(this);
    const isNumber = schedule.kind === "semaphore" || schedule.kind === "permits";
    if (isNumber) this.servers[0]?.execute(["SET", NAME, String(schedule.permits)]);
    for (const step of schedule.steps) this.#plan(step);
    world.onRest = () => this.#atRest();
    const isOver = () => this.failure !== undefined || (this.#unsettled === 0 && this.faultsEnd <= world.now);
    await world.runUntil(this.#end(), isOver);
    const { length: operations, states } = this.#judgeHistory();
    if (this.#unsettled > 0 && this.#isWanted) ends.unsettled();
    const isFailed = () => this.failure !== undefined;
    await world.runUntil(world.now + ends.cleanUpTime, isFailed);
    if (this.#isWanted) ends.nothingHeld();
    await world.runUntil(world.now + MARKERS, isFailed);
    if (this.#isWanted) ends.nothingLeft();
    const hash = this.#journal.hash;
    await this.#close();
    const [calls, granted] = [this.calls.length, this.stays.length];
    const { failure } = this;
    return { failure, hash, lines: this.#journal.lines, calls, granted, operations, states };
  }

  /** Whether the other checks are still needed. */
  get #isWanted(): boolean {
    return !this.#onlyHistory && this.failure === undefined;
  }

  #atRest(): void {
    for (const stay of this.stays)
      if (stay.leftAt === undefined && stay.isHeld()) stay.heldUntil = this.world.now;
    if (!this.#onlyHistory) this.#checks.atRest();
  }

  /** Whether the calls and their answers can be put in one order. */
  #judgeHistory(): { readonly length: number; readonly states: number } {
    const { length, verdict } = judge(this);
    if (verdict.linearizable === false) this.fail(refutationOf(verdict));
    else if (verdict.linearizable === undefined)
      this.fail(`${verdict.name}: the search for an order was given up`);
    return { length, states: verdict.states };
  }

  #end(): number {
    const { steps, watchdogTimeout, pollCap, commandTimeout } = this.schedule;
    let end = PATIENCE + this.faultsEnd;
    for (const step of steps) {
      if (step.do === "take") end += step.at + step.keep + (step.extend ?? 0) + (step.lease ?? 0);
      end += 3 * pollCap + commandTimeout;
      if (step.do === "crash") end += watchdogTimeout;
    }
    return end;
  }

  #plan(step: Schedule["steps"][number]): void {
    if (step.do !== "take") return this.#planFault(step);
    const process = this.processes[step.client];
    if (!process) return;
    this.#unsettled++;
    const isOver = () => {
      this.#unsettled--;
    };
    // The task of a process that is dead by then never begins.
    void process.machine.clock.after(
      step.at,
      () => void process.run(() => this.#take(process, step)).then(isOver),
    );
  }

  #planFault(step: Fault): void {
    const { world } = this;
    const length = "for" in step ? step.for : 0;
    this.faultsEnd = Math.max(this.faultsEnd, step.at + length);
    if (step.do === "take away") return this.#takeAway(step);
    if (step.do === "failover") {
      let replica: Keyspace | undefined;
      world.at(step.at - step.lag, () => {
        replica = this.servers[0]?.keys.copy();
      });
      world.at(step.at, () => this.#goAway(step.for, () => replica as Keyspace));
      return;
    }
    world.at(step.at, () => {
      this.tell(JSON.stringify(step));
      if (step.do === "restart") {
        const { keys } = this.servers[0] as MemoryServer;
        return this.#goAway(step.for, step.keeps ? undefined : () => keys.copy(true));
      }
      const process = this.processes[step.client];
      if (step.do === "crash") this.#crash(process);
      if (step.do === "stall") process?.machine.stall(step.for);
      for (const network of process?.networks ?? []) {
        if (step.do === "cut") network.cut(step.for);
        if (step.do === "drop") network.drop((index) => ((step.which >> index) & 1) === 1);
      }
    });
  }

  #takeAway(step: Fault & { readonly do: "take away" }): void {
    const { schedule, world } = this;
    const process = this.processes[step.client];
    const key = schedule.kind === "multi" ? MEMBERS[0] : NAME;
    if (step.by === "deletion") {
      world.at(step.at, () => {
        this.thefts.push(world.now);
        this.servers[0]?.execute(["DEL", key]);
      });
      return;
    }
    process?.machine.clock.after(step.at, () => {
      const { at, client } = step;
      const asked: Take = { do: "take", at, client, keep: 0 };
      const call: Call = { step: asked, process, whose: `${process.index} by force`, invoked: world.now };
      void process.run(() => process.force(schedule, step).catch((error) => this.#judge(call, error)));
    });
  }

  #crash(process: Process | undefined): void {
    if (!process || process.machine.isDead) return;
    process.machine.stall(Number.POSITIVE_INFINITY);
    const { schedule, calls, stays, world } = this;
    const begun = calls.filter((call) => call.process === process);
    const planned = schedule.steps.filter(
      (step) => step.do === "take" && step.client === process.index,
    ).length;
    // Tasks that have ended: they settled, and gave back their holds.
    const over = begun.filter((call) => this.#isOver(call, stays)).length;
    this.#unsettled -= planned - over;
    this.tell(`process ${process.index} is dead with ${planned - over} tasks at ${world.now}`);
  }

  #isOver(call: Call, stays: readonly Stay[]): boolean {
    if (call.outcome === undefined) return false;
    const stay = stays.find((each) => each.call === call);
    return stay === undefined || stay.overAt !== undefined;
  }

  /** The server goes, and its data with it, except what `keys` returns. */
  #goAway(ms: number, keys: (() => Keyspace) | undefined): void {
    const [server] = this.servers;
    for (const { networks } of this.processes) networks[0]?.lose();
    if (keys) this.losses.push(this.world.now);
    server?.restart(keys?.() ?? server.keys);
    this.#awayUntil = Math.max(this.#awayUntil, this.world.now + ms);
    this.world.at(this.world.now + ms, () => {
      if (this.world.now < this.#awayUntil) return;
      for (const { networks } of this.processes) networks[0]?.find();
    });
  }

  async #take(process: Process, step: Take): Promise<void> {
    const { world } = this;
    const number = this.calls.length;
    const owner = step.owner === undefined ? `call ${number}` : `owner ${step.owner}`;
    const whose = `${process.index} ${owner}`;
    const call: Call = { step, process, whose, invoked: world.now };
    this.calls.push(call);
    this.tell(`${number} of ${whose} is called: ${JSON.stringify(step)}`);
    let stay: Stay | undefined;
    try {
      stay = await process.take(this.schedule, call);
      call.outcome = stay ? "granted" : "refused";
    } catch (error) {
      call.outcome = "failed";
      this.#judge(call, error);
    }
    call.settled = world.now;
    this.tell(`${number} is ${call.outcome}`);
    if (!stay) return;
    this.stays.push(stay);
    const extend = async () => {
      if (step.extend === undefined) return;
      await stay.hold?.extend(step.extend).catch((error: unknown) => this.#judge(call, error));
    };
    const isLast = Number(step.extend) % 2 === 0;
    await process.machine.sleep(step.keep / 2);
    if (!isLast) await extend();
    await process.machine.sleep(step.keep / 2);
    // Its answer is not awaited before the hold is given back.
    if (isLast) void extend();
    stay.leftAt = world.now;
    this.tell(`${number} gives back`);
    try {
      await stay.giveBack();
      stay.isDone = true;
    } catch (error) {
      this.#judge(call, error);
    }
    stay.overAt = world.now;
    this.tell(`${number} has given back`);
  }

  /** An error that no call of this library may end with fails the simulation. */
  #judge(call: Call, error: unknown): void {
    const isAbort = error instanceof Error && error.name === "AbortError";
    const code = isLockError(error) ? error.code : undefined;
    call.code ??= code;
    this.tell(`${call.whose}: ${code ?? String(error)}`);
    if (this.#onlyHistory) return;
    if (isAbort || code) this.#checks.failed(call, code);
    else this.fail(`a call of ${call.whose} ends with ${String((error as Error)?.stack)}`);
  }

  async #close(): Promise<void> {
    const { world, processes } = this;
    world.onRest = () => {};
    for (const { machine, networks } of processes) {
      for (const network of networks) network.heal();
      machine.revive();
    }
    let closed = 0;
    for (const { clients } of processes)
      for (const client of clients) void client.close({ timeout: 0 }).then(() => closed++);
    await world.runUntil(world.now + CLOSING, () => closed === processes.length * this.servers.length);
  }
}
