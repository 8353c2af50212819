/**
 * Plays a schedule: real clients and the real Lua in virtual time. One seed decides all, so a schedule happens the same way each time
 * (deterministic simulation, as FoundationDB and TigerBeetle test).
 */
import type { Keyspace } from "../../src/entries/testing/keyspace.js";
import { MemoryServer } from "../../src/entries/testing/memory-server.js";
import type { Reply } from "../../src/entries/testing/reply.js";
import { type FencedHold, type Hold, isLockError } from "../../src/index.js";
import { Checks } from "./checks.js";
import { Journal } from "./journal.js";
import { NAME, Process } from "./process.js";
import type { Fault, Schedule, Take } from "./schedule.js";
import { ServerClock, World } from "./world.js";

/** Milliseconds for which calls that never end are waited for, after all that may hold them up. */
const PATIENCE = 60_000;
/** Milliseconds after which the last marker has lapsed. */
const MARKERS = 62_000;
/** Milliseconds that a client may take to close. */
const CLOSING = 60_000;

/** A call that takes something. Times are those of the world. */
export interface Call {
  readonly step: Take;
  readonly process: Process;
  /** Calls of one owner nest. */
  readonly whose: string;
  readonly invoked: number;
  /** Those of the process, at which its wait began. */
  settled?: number;
  outcome?: "granted" | "refused" | "failed";
}

/** What a call was granted, until it is given back. */
export interface Stay {
  readonly call: Call;
  readonly granted: number;
  /** Of a lock. */
  readonly hold?: Hold | undefined;
  readonly giveBack: () => Promise<void>;
  /** Fencing. */
  readonly token?: bigint | undefined;
  /** Whether the process may believe that it has it. */
  readonly isHeld: () => boolean;
  /** Giving back was called. */
  left: boolean;
  /** And has settled; `isDone`: without an error. */
  isOver?: boolean;
  isDone?: boolean;
}

export interface Outcome {
  /** What was wrong; the first one. */
  readonly failure: string | undefined;
  /** Of everything that happened. */
  readonly hash: string;
  readonly lines: readonly string[] | undefined;
  readonly calls: number;
  readonly granted: number;
}

class TracedServer extends MemoryServer {
  readonly #tell: (text: string) => void;

  constructor(world: World, tell: (text: string) => void) {
    super(new ServerClock(world));
    this.#tell = tell;
  }

  override execute(command: readonly string[]): Reply {
    const [name = "", script = "", ...rest] = command;
    // It tells the number of the server, which is another one each time.
    if (/^info$/i.test(name)) return super.execute(command);
    const what = /^eval$/i.test(name) ? `EVAL of ${script.length}` : `${name} ${script.slice(0, 8)}`;
    try {
      const reply = super.execute(command);
      this.#tell(`${what} ${rest.join(" ")} → ${told(reply)}`);
      return reply;
    } catch (error) {
      this.#tell(`${what} ${rest.join(" ")} → ${String(error)}`);
      throw error;
    }
  }
}

function told(reply: Reply): string {
  return Array.isArray(reply) ? `[${reply.map(told).join(" ")}]` : String(reply);
}

export class Simulation {
  readonly schedule: Schedule;
  readonly world: World = new World();
  readonly servers: readonly MemoryServer[];
  readonly processes: readonly Process[];
  readonly calls: Call[] = [];
  readonly stays: Stay[] = [];
  /** When data was lost. */
  readonly losses: number[] = [];
  /** No fault is still at work after that. */
  faultsEnd = 0;
  failure: string | undefined;
  readonly #journal: Journal;
  readonly #checks = new Checks(this);
  #unsettled = 0;

  constructor(schedule: Schedule, isRead = false) {
    this.schedule = schedule;
    this.#journal = new Journal(isRead);
    const count = schedule.kind === "red" ? 3 : 1;
    this.servers = Array.from({ length: count }, (_, i) => {
      return new TracedServer(this.world, (text) => this.tell(`server ${i}: ${text}`));
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
    const checks = this.#checks;
    if (schedule.kind === "semaphore") this.servers[0]?.execute(["SET", NAME, String(schedule.permits)]);
    if (schedule.kind === "permits") this.servers[0]?.execute(["SET", NAME, String(schedule.permits)]);
    for (const step of schedule.steps) this.#plan(step);
    world.onRest = () => checks.atRest();
    const isOver = () => this.failure !== undefined || (this.#unsettled === 0 && this.faultsEnd <= world.now);
    await world.runUntil(this.#end(), isOver);
    if (this.#unsettled > 0 && !this.failure) checks.unsettled();
    const isFailed = () => this.failure !== undefined;
    await world.runUntil(world.now + checks.cleanUpTime, isFailed);
    if (!this.failure) checks.nothingHeld();
    await world.runUntil(world.now + MARKERS, isFailed);
    if (!this.failure) checks.nothingLeft();
    const hash = this.#journal.hash;
    await this.#close();
    const granted = this.stays.length;
    return { failure: this.failure, hash, lines: this.#journal.lines, calls: this.calls.length, granted };
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
    // That of a process which has died by then never begins.
    void process.machine.clock.after(
      step.at,
      () => void process.run(() => this.#take(process, step)).then(isOver),
    );
  }

  #planFault(step: Fault): void {
    const { world } = this;
    const length = "for" in step ? step.for : 0;
    this.faultsEnd = Math.max(this.faultsEnd, step.at + length);
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

  #crash(process: Process | undefined): void {
    if (!process || process.machine.isDead) return;
    process.machine.stall(Number.POSITIVE_INFINITY);
    const { schedule, calls, stays, world } = this;
    const begun = calls.filter((call) => call.process === process);
    const planned = schedule.steps.filter(
      (step) => step.do === "take" && step.client === process.index,
    ).length;
    // Tasks that have ended: they settled, and gave back what they had.
    const over = begun.filter((call) => this.#isOver(call, stays)).length;
    this.#unsettled -= planned - over;
    this.tell(`process ${process.index} is dead with ${planned - over} tasks at ${world.now}`);
  }

  #isOver(call: Call, stays: readonly Stay[]): boolean {
    if (call.outcome === undefined) return false;
    const stay = stays.find((each) => each.call === call);
    return stay === undefined || stay.isOver === true;
  }

  /** The server goes, all data with it but for what `keys` tells. */
  #goAway(ms: number, keys: (() => Keyspace) | undefined): void {
    const [server] = this.servers;
    for (const { networks } of this.processes) networks[0]?.lose();
    if (keys) this.losses.push(this.world.now);
    server?.restart(keys?.() ?? server.keys);
    this.world.at(this.world.now + ms, () => {
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
      stay = await this.#granted(call);
      call.outcome = stay ? "granted" : "refused";
    } catch (error) {
      call.outcome = "failed";
      this.#judge(call, error);
    }
    call.settled = world.now;
    this.tell(`${number} is ${call.outcome}`);
    if (!stay) return;
    this.stays.push(stay);
    await process.machine.sleep(step.keep / 2);
    if (step.extend !== undefined && stay.hold)
      await stay.hold.extend(step.extend).catch((error: unknown) => this.#judge(call, error));
    await process.machine.sleep(step.keep / 2);
    stay.left = true;
    this.tell(`${number} gives back`);
    try {
      await stay.giveBack();
      stay.isDone = true;
    } catch (error) {
      this.#judge(call, error);
    }
    stay.isOver = true;
    this.tell(`${number} has given back`);
  }

  async #granted(call: Call): Promise<Stay | undefined> {
    const { process, step } = call;
    const controller = step.abort === undefined ? undefined : new AbortController();
    if (controller) process.machine.clock.after(step.abort as number, () => controller.abort());
    const { kind } = this.schedule;
    if (kind === "semaphore") return this.#permit(call, controller?.signal);
    if (kind === "permits") return this.#lease(call, controller?.signal);
    const hold = await process.lock(this.schedule, step, controller?.signal);
    if (!hold) return undefined;
    const { token } = hold as Partial<FencedHold>;
    const { now: granted } = this.world;
    return {
      call,
      granted,
      hold,
      token,
      isHeld: () => hold.isHeld,
      giveBack: () => hold.unlock(),
      left: false,
    };
  }

  async #permit(call: Call, signal: AbortSignal | undefined): Promise<Stay | undefined> {
    const { process, step } = call;
    if (!(await process.permit(step, signal))) return undefined;
    const giveBack = () => process.client.getSemaphore(NAME).release();
    return { call, granted: this.world.now, isHeld: () => true, giveBack, left: false };
  }

  async #lease(call: Call, signal: AbortSignal | undefined): Promise<Stay | undefined> {
    const { process, step } = call;
    const { machine, client } = process;
    const begun = machine.clock.mono();
    const id = await process.lease(step, signal);
    if (id === null) return undefined;
    // From when its command was sent, which nobody tells.
    const until = step.lease === undefined ? Number.POSITIVE_INFINITY : begun + step.lease * 0.99 - 2;
    const stay = this.#kept(process, id, until);
    const giveBack = () => client.getPermitExpirableSemaphore(NAME).release(id);
    return { call, granted: this.world.now, isHeld: stay, giveBack, left: false };
  }

  /** Whether a permit is: until its lease is over, or the event `lost`. While its process stalls nobody can be told. */
  #kept({ machine, client }: Process, id: string, until: number): () => boolean {
    let isLost = false;
    client.on("lost", ({ permitId }) => {
      isLost ||= permitId === id;
    });
    const { stalls } = machine;
    return () =>
      !isLost &&
      machine.clock.mono() < until &&
      (until < Number.POSITIVE_INFINITY || machine.stalls === stalls);
  }

  /** An error that no call of this library may end with fails the simulation. */
  #judge(call: Call, error: unknown): void {
    const isAbort = error instanceof Error && error.name === "AbortError";
    const code = isLockError(error) ? error.code : undefined;
    this.tell(`${call.whose}: ${code ?? String(error)}`);
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
