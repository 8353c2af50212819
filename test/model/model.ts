/**
 * The contract of a lock as a state machine: it is told the calls and their outcomes, and objects to what no lock may
 * do. If the contract leaves a choice, an outcome is right if it is one of the choices.
 */
import { Holds } from "./holds.js";
import { type Ask, type Call, type Hold, type Owner, Violation } from "./parties.js";
import type { Rules, Side } from "./rules.js";
import { POLL_CAP, WATCHDOG } from "./world.js";

/** A waiter that wakes by itself may be that much later than the end of the lease. */
const JITTER = 60;
/** Milliseconds for which a waiter behind one of its own process relies on that one to wake it. */
const MOMENT = 15;
/** A client that is silent for that long may be taken for dead. */
const PATIENCE = 2 * POLL_CAP;

export class Model {
  readonly holds: Holds;
  readonly calls: Call[] = [];
  readonly closed: Set<number> = new Set();
  /** Whether more than one call was made since the last rest. */
  hasty = false;
  /** The client whose timers stand still. */
  late: number | undefined;
  /** Until then the lock may be free while calls wait, because no message told of its end. */
  #quietUntil = 0;
  #order = 0;
  /** Owners that have sent something since the last rest. */
  readonly #busy = new Set<Owner>();
  readonly #rules: Rules;
  readonly #time: { readonly now: number };

  constructor(rules: Rules, time: { readonly now: number }) {
    this.#rules = rules;
    this.#time = time;
    this.holds = new Holds(time);
  }

  get #now(): number {
    return this.#time.now;
  }

  /** The waiting calls, in their order. */
  get waiting(): Call[] {
    return this.calls.filter(({ pending }) => pending).sort((a, b) => a.order - b.order);
  }

  /** Moments near which no check is made, because something due then may or may not have happened. */
  get moments(): number[] {
    return [
      ...this.holds
        .believed()
        .flatMap(({ ends, lapses, renewedAt }) => [ends, lapses, renewedAt + WATCHDOG / 3]),
      ...this.waiting.map(({ begun, wait }) => begun + wait),
      this.#quietUntil,
    ];
  }

  // Calls

  ask(ask: Ask): Call {
    const { owner, side } = ask;
    const isBusy = this.#busy.has(owner);
    const gone = this.#sends(owner, side);
    const order = ++this.#order;
    const call: Call = {
      ...ask,
      client: owner.client,
      begun: this.#now,
      called: this.calls.length,
      order,
      latest: order,
      nested: this.holds.liveOf(owner).length > 0,
      refused: this.#rules.refuses(this.#believedOf(owner), side),
      aborted: false,
      pending: true,
      waits: false,
      displaced: isBusy || gone.length > 0,
      unsent: isBusy ? gone : [],
      forfeited: false,
    };
    this.calls.push(call);
    return call;
  }

  abort(call: Call): void {
    call.aborted = true;
    this.holds.unnotice(call.unsent);
    call.unsent = [];
  }

  /** Returns the right outcome of `hold.unlock()`. */
  unlock(hold: Hold): string {
    if (hold.state === "held") this.#sends(hold.owner, hold.side);
    return this.holds.unlock(hold);
  }

  /** Returns the right outcome of that owner's `lock.unlock()`. */
  unlockInnermost(owner: Owner, side: Side): string {
    if (owner.stacks[side].at(-1)?.state === "held") this.#sends(owner, side);
    return this.holds.unlockInnermost(owner, side);
  }

  /** Returns the right outcome of `hold.extend()`. */
  extend(hold: Hold, lease: number): string {
    if (hold.state === "held") this.#sends(hold.owner, hold.side);
    return this.holds.extend(hold, lease);
  }

  /** Returns the right outcome of `forceUnlock()`. */
  force(side: Side): string {
    const live = this.holds.live(side);
    this.holds.take(live, "forced");
    return String(live.length > 0);
  }

  /** The lock's keys are lost. */
  vanish(): void {
    this.holds.take(this.holds.live(), "expired", "taken", "forced");
    this.#quiet(this.#now);
  }

  close(client: number): void {
    this.closed.add(client);
    this.holds.close(client);
  }

  /** The timers of a client will be that late. */
  stall(client: number, ms: number): void {
    this.late = client;
    if (ms < PATIENCE) return;
    for (const call of this.waiting) call.forfeited ||= call.client === client;
  }

  // Events

  granted(call: Call): Hold {
    this.#over(call);
    const { owner, client, side, lease } = call;
    const rival = this.#rival(call);
    if (rival) throw new Violation(`granted beside ${rival.side} ${this.holds.nameOf(rival)}`);
    // A call that was made before the last write hold was given back is no upgrade.
    if (this.#waitsForItself(call) && !(this.hasty && call.nested))
      throw new Violation("an upgrade was granted");
    if (call.aborted) throw new Violation("granted after its abort");
    if (this.closed.has(client)) throw new Violation("granted by a closed client");
    const overdue = call.wait > 0 && this.#isOverdue(call) && this.late !== client;
    if (overdue) throw new Violation("granted after its wait");
    const first = this.#isNested(call) || call.forfeited ? undefined : this.#whoGoesBefore(call);
    if (first) throw new Violation(`granted before ${this.#nameOf(first)}`);
    for (const other of this.waiting) other.nested ||= other.owner === owner;
    return this.holds.add(owner, side, lease);
  }

  /** A call was not granted: `outcome` is null or the code of its error. */
  ended(call: Call, outcome: string): void {
    this.#over(call);
    if (!this.#mayEnd(call, outcome)) throw new Violation(`${outcome} without a reason`);
  }

  lost(hold: Hold, reason: string): void {
    this.holds.lose(hold, reason);
    // The hold expired on the server before its client could give it back.
    if (hold.lapses <= this.#now) this.#quiet(hold.lapses);
    // A nested call on its way goes on as a new one, which goes past the waiting calls.
    for (const call of this.waiting) call.forfeited ||= call.owner === hold.owner;
  }

  /** Whether a call waits although it need not. */
  get anyAsleep(): boolean {
    return this.waiting.some((call) => this.#isAsleep(call));
  }

  /** Called when nothing happens until time passes: checks that the calls were answered that must have been. */
  rest(): void {
    this.holds.rest();
    for (const call of this.waiting) {
      const name = this.#nameOf(call);
      if (call.aborted || this.closed.has(call.client)) throw new Violation(`${name} was not ended`);
      if (this.#isOverdue(call)) throw new Violation(`${name} outlived its wait`);
      if (this.#waitsForItself(call)) throw new Violation(`${name} waits for itself`);
      if (this.#isAsleep(call)) throw new Violation(`${name} was left asleep`);
    }
    for (const call of this.waiting) {
      if (call.displaced) call.latest = ++this.#order;
      call.displaced = false;
      call.unsent = [];
      call.waits = true;
    }
    this.hasty = false;
    this.#busy.clear();
  }

  // Conditions

  #mayEnd(call: Call, outcome: string): boolean {
    if (outcome === "aborted") return call.aborted;
    if (outcome === "CLIENT_CLOSED") return this.closed.has(call.client);
    if (outcome === "UPGRADE_REFUSED") return call.refused || this.#readsBeside(call.owner);
    if (outcome !== "null" && outcome !== "WAIT_TIMEOUT") return false;
    if (call.wait > 0) return this.#isOverdue(call);
    // A single try. It is not known which other calls of the same moment it met.
    if (this.hasty || this.#rival(call)) return true;
    return this.holds.liveOf(call.owner).length === 0 && this.#isHeldUp(call);
  }

  #isAsleep(call: Call): boolean {
    if (this.#rival(call)) return false;
    if (this.holds.liveOf(call.owner).length > 0) return true;
    return !this.#isHeldUp(call) && this.#now >= this.#quietUntil;
  }

  /** A holder of the lock with which the call cannot share it. */
  #rival(call: Call): Hold | undefined {
    const { share } = this.#rules;
    return this.holds.live().find(({ owner, side }) => owner !== call.owner && !share(side, call.side));
  }

  #waitsForItself({ owner, side }: Call): boolean {
    return this.#rules.refuses(this.holds.liveOf(owner), side);
  }

  #believedOf(owner: Owner): Hold[] {
    return this.holds.believed().filter((hold) => hold.owner === owner);
  }

  /** True even if it is only a moment later that the read call is known to be granted. */
  #readsBeside(owner: Owner): boolean {
    const asked = this.waiting.some((call) => call.owner === owner && call.side === "read");
    return asked || this.#rules.refuses(this.#believedOf(owner), "write");
  }

  #isNested(call: Call): boolean {
    return call.nested || this.holds.liveOf(call.owner).length > 0;
  }

  #isHeldUp(call: Call): boolean {
    return this.waiting.some((other) => other !== call && this.#rules.mayHoldUp(other, call));
  }

  #whoGoesBefore(call: Call): Call | undefined {
    return this.waiting.find((other) => {
      if (other.owner === call.owner || other.aborted || this.#isOverdue(other)) return false;
      // A waiter behind one of its own process tells the server of itself only after a moment.
      if (this.#now - other.begun < MOMENT && other.client !== call.client) return false;
      return !other.displaced && !other.forfeited && this.#rules.goesBefore(other, call);
    });
  }

  #isOverdue({ begun, wait }: Call): boolean {
    return begun + wait <= this.#now;
  }

  #nameOf(call: Call): string {
    return `call ${this.calls.indexOf(call)}`;
  }

  #over(call: Call): void {
    if (!call.pending) throw new Violation("settled twice");
    call.pending = false;
  }

  #quiet(since: number): void {
    this.#quietUntil = Math.max(this.#quietUntil, since + POLL_CAP + JITTER);
  }

  /** An owner sends a command. Returns the holds that it will find gone. */
  #sends(owner: Owner, side: Side): Hold[] {
    this.#busy.add(owner);
    return this.holds.notice(owner, side);
  }
}
