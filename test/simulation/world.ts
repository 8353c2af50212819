/**
 * Virtual time: events in their order; each is over before the next one begins. Node's clocks and timers take no part.
 */
import type { Clock } from "../../src/base/clock.js";
import { TestClock } from "../../src/entries/testing/clock.js";

/** Epoch milliseconds at which each simulation begins. */
export const EPOCH = 1_700_000_000_000;

/**
 * The shortest step of time, in milliseconds: with a smaller one the time would not change, and a timer would fire for
 * ever.
 */
const SHORTEST = 0.001;

interface Event {
  readonly at: number;
  /** Of two events at the same time, the one that was added first comes first. */
  readonly serial: number;
  /** Undefined after a cancellation. */
  run: (() => void) | undefined;
}

export class World {
  /** Milliseconds since the beginning. */
  now = 0;
  /** Called after each event, when everything that it caused is done. */
  onRest: () => void = () => {};
  #serial = 0;
  /** A binary heap. */
  readonly #events: Event[] = [];

  /** Runs something at `time`, or now if that is past. Returns a function that cancels it. */
  at(time: number, run: () => void): () => void {
    const event: Event = { at: Math.max(time, this.now), serial: this.#serial++, run };
    const events = this.#events;
    let place = events.push(event) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(event, events[parent] as Event)) break;
      events[place] = events[parent] as Event;
      place = parent;
    }
    events[place] = event;
    return () => {
      event.run = undefined;
    };
  }

  /** Lets time pass up to `end`, or until `isOver`. */
  async runUntil(end: number, isOver: () => boolean = () => false): Promise<void> {
    while (!isOver()) {
      const next = this.#events[0];
      if (!next || next.at > end) {
        this.now = end;
        return;
      }
      this.#pop();
      if (!next.run) continue;
      this.now = next.at;
      next.run();
      await rest();
      this.onRest();
    }
  }

  #pop(): void {
    const events = this.#events;
    const last = events.pop() as Event;
    if (events.length === 0) return;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && isBefore(events[child + 1] as Event, events[child] as Event)) child++;
      if (!isBefore(events[child] as Event, last)) break;
      events[place] = events[child] as Event;
      place = child;
    }
    events[place] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.serial < b.serial);
}

/** Resolves when all microtasks and `setImmediate` callbacks have run. */
function rest(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The server's clock. */
export class ServerClock extends TestClock {
  readonly #world: World;

  constructor(world: World) {
    super(EPOCH);
    this.#world = world;
  }

  override mono(): number {
    return this.#world.now;
  }

  override wall(): number {
    return EPOCH + this.#world.now;
  }
}

/**
 * A process: its clock, which may run a little fast or slow, and its event loop, which may stall for a while or for
 * ever. After a stall, arrived messages are read before timers fire, as `systemClock` does it.
 */
export class Machine {
  readonly clock: Clock;
  readonly #world: World;
  /** The event loop stands still until then. */
  #stalledUntil = 0;
  /** How often it has stalled. */
  stalls = 0;
  /**
   * Timers end at whole milliseconds of the world plus this fraction, like Node's; absent: exactly when they are due.
   */
  phase: number | undefined;
  #arrived: (() => void)[] = [];
  #due: (() => void)[] = [];

  /** `rate`: milliseconds of its clock in one millisecond of the world. */
  constructor(world: World, rate: number) {
    this.#world = world;
    this.clock = {
      mono: () => world.now * rate,
      wall: () => EPOCH + world.now * rate,
      after: (ms, callback) => {
        let isCancelled = false;
        const time = ms > 0 ? Math.max(SHORTEST, ms / rate) : 0;
        const cancel = world.at(this.#ends(world.now + time), () =>
          this.#run(() => isCancelled || callback(), this.#due),
        );
        return () => {
          isCancelled = true;
          cancel();
        };
      },
    };
  }

  get isStalled(): boolean {
    return this.#world.now < this.#stalledUntil;
  }

  get isDead(): boolean {
    return this.#stalledUntil === Number.POSITIVE_INFINITY;
  }

  /** Something has arrived from the network. */
  receive(callback: () => void): void {
    this.#run(callback, this.#arrived);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve));
  }

  /** Stalls the event loop; with Infinity the process dies silently. */
  stall(ms: number): void {
    this.stalls++;
    this.#stalledUntil = Math.max(this.#stalledUntil, this.#world.now + ms);
    if (!this.isDead) this.#world.at(this.#stalledUntil, () => this.#resume());
  }

  /** Lets a dead process do its remaining work, when no check looks at it any more. */
  revive(): void {
    this.#stalledUntil = 0;
    this.#resume();
  }

  #ends(due: number): number {
    return this.phase === undefined ? due : Math.ceil(due - this.phase) + this.phase;
  }

  #run(callback: () => void, waiting: (() => void)[]): void {
    if (this.isStalled) waiting.push(callback);
    else callback();
  }

  #resume(): void {
    if (this.isStalled) return;
    const work = [...this.#arrived.splice(0), ...this.#due.splice(0)];
    // Each callback has its own turn of the event loop.
    for (const callback of work) this.#world.at(this.#world.now, () => this.receive(callback));
  }
}
