/**
 * What semaphores and latches have in common for the model: calls that wait for something, the reasons for which a call
 * may end, and that no call is left asleep.
 */
import { Violation } from "../parties.js";
import { POLL_CAP } from "../world.js";

/** A waiter that wakes by itself may be that much later than it planned. */
const JITTER = 60;

/** The precision of a time on the server, in milliseconds; the machine may add to it. */
const SLACK = 50;

export interface Time {
  readonly now: number;
  /** The longest real time for which the server's clock ran on its own, in milliseconds. */
  readonly lag: number;
}

export interface Call {
  readonly client: number;
  /** Milliseconds; 0 for a single try. */
  readonly wait: number;
  readonly begun: number;
  aborted: boolean;
  pending: boolean;
}

export abstract class Calls<C extends Call> {
  readonly calls: C[] = [];
  readonly closed: Set<number> = new Set();
  /** Whether more than one call was made since the last rest. */
  hasty = false;
  /** The client whose timers stand still. */
  late: number | undefined;
  /** Until then something may be free while calls wait, because no message told of it. */
  #quietUntil = 0;
  readonly #time: Time;

  constructor(time: Time) {
    this.#time = time;
  }

  /** Whether there is what the call wants. */
  protected abstract has(call: C): boolean;

  /** Whether a call that is answered only now may have found what it wants. */
  protected mightHave(call: C): boolean {
    return this.has(call);
  }

  /** Whether the earlier call `first` of the same client may keep `call` waiting. */
  protected abstract holdsUp(first: C, call: C): boolean;

  get now(): number {
    return this.#time.now;
  }

  /** How imprecise a time on the server may be, in milliseconds. */
  get slack(): number {
    return SLACK + this.#time.lag;
  }

  get waiting(): C[] {
    return this.calls.filter(({ pending }) => pending);
  }

  /** Moments near which no check is made, because something due then may or may not have happened. */
  get moments(): number[] {
    return [...this.waiting.map(({ begun, wait }) => begun + wait), this.#quietUntil];
  }

  ask(call: C): C {
    this.calls.push(call);
    return call;
  }

  /** Something became free without a message: its waiters find it by themselves. */
  quiet(since: number = this.now): void {
    this.#quietUntil = Math.max(this.#quietUntil, since + POLL_CAP + JITTER);
  }

  /** The call has got what it wants. */
  granted(call: C): void {
    this.#over(call);
    if (!this.mightHave(call)) throw new Violation("there was nothing for it");
    if (call.aborted) throw new Violation("granted after its abort");
    if (this.closed.has(call.client)) throw new Violation("granted by a closed client");
    const overdue = call.wait > 0 && this.#isOverdue(call) && this.late !== call.client;
    if (overdue) throw new Violation("granted after its wait");
    const first = this.#before(call).find((other) => this.has(other) && !this.#isOverdue(other));
    if (first && call.wait > 0) throw new Violation(`granted before ${this.nameOf(first)}`);
  }

  /** A call was not granted: `outcome` is `nothing`, or the reason. */
  ended(call: C, outcome: string): void {
    this.#over(call);
    if (!this.#mayEnd(call, outcome)) throw new Violation(`${outcome} without a reason`);
  }

  /** Called when nothing happens until time passes: checks that the calls were answered that must have been. */
  rest(): void {
    for (const call of this.waiting) {
      const name = this.nameOf(call);
      if (call.aborted || this.closed.has(call.client)) throw new Violation(`${name} was not ended`);
      if (this.#isOverdue(call)) throw new Violation(`${name} outlived its wait`);
      if (this.#isAsleep(call)) throw new Violation(`${name} was left asleep`);
    }
    this.hasty = false;
  }

  nameOf(call: C): string {
    return `call ${this.calls.indexOf(call)}`;
  }

  #isAsleep(call: C): boolean {
    if (!this.has(call) || this.now < this.#quietUntil) return false;
    return !this.#before(call).some((first) => this.holdsUp(first, call));
  }

  /** The earlier calls of the same client that still wait. */
  #before(call: C): C[] {
    const { client } = call;
    const earlier = this.calls.slice(0, this.calls.indexOf(call));
    return earlier.filter((other) => other.pending && !other.aborted && other.client === client);
  }

  #mayEnd(call: C, outcome: string): boolean {
    if (outcome === "aborted") return call.aborted;
    if (outcome === "CLIENT_CLOSED") return this.closed.has(call.client);
    if (outcome !== "nothing") return false;
    if (call.wait > 0) return this.#isOverdue(call);
    // A single try. It is not known which other calls of the same moment it met.
    return this.hasty || !this.has(call);
  }

  #isOverdue({ begun, wait }: Call): boolean {
    return begun + wait <= this.now;
  }

  #over(call: C): void {
    if (!call.pending) throw new Violation("settled twice");
    call.pending = false;
  }
}
