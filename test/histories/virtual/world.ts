/**
 * Processes that run in virtual time and call a store over a network that loses, delays and repeats. A killed process
 * never goes on, and a paused one runs its timers late. Everything follows from a seed.
 */
import { Random } from "../../support/random.js";
import type { Mistake } from "./mistakes.js";

/** The work of a process up to its next wait, which lasts `ms` milliseconds, or until a signal if that comes first. */
export type Script<T = void> = Generator<{ readonly ms: number; readonly signal?: Signal }, T, void>;

/** Milliseconds for which a call waits for its answer. */
const COMMAND_TIMEOUT = 150;
const RECONNECT = 20;
const DEAF = 60;

/** A signal that stays set until a script has waited for it. */
export class Signal {
  isSet = false;
  onSet: (() => void) | undefined;

  set(): void {
    this.isSet = true;
    this.onSet?.();
  }
}

export interface Manner {
  readonly processes: number;
  readonly seed: number;
  readonly mistake: Mistake | undefined;
}

export class World {
  now = 0;
  readonly random: Random;
  readonly processes: readonly VirtualProcess[];
  readonly #mistake: Mistake | undefined;
  readonly #events: { readonly at: number; readonly run: () => void }[] = [];
  #ids = 0;
  #stamp = 0;

  constructor({ processes, seed, mistake }: Manner) {
    this.random = new Random(seed);
    this.#mistake = mistake;
    this.processes = Array.from({ length: processes }, (_, i) => new VirtualProcess(this, `p${i + 1}`));
  }

  /** Whether this mistake is planted. */
  has(mistake: Mistake): boolean {
    return this.#mistake === mistake;
  }

  newId(): string {
    return `#${++this.#ids}`;
  }

  /** A time for a record: a later record has a later time, also within one millisecond. */
  stamp(): number {
    this.#stamp = Math.max(this.now, this.#stamp + 1e-6);
    return this.#stamp;
  }

  between(least: number, most: number): number {
    return least + this.random.below(most - least + 1);
  }

  after(ms: number, run: () => void): void {
    const at = this.now + ms;
    let place = this.#events.length;
    while (place > 0 && (this.#events[place - 1]?.at ?? 0) <= at) place--;
    // The next event is the last of the list; of several events at one instant, the first that was added comes first.
    this.#events.splice(place, 0, { at, run });
  }

  /** Runs until there is no event left. */
  run(): void {
    for (let event = this.#events.pop(); event; event = this.#events.pop()) {
      this.now = event.at;
      event.run();
    }
  }

  /** Wakes all listeners, a moment later. */
  publish(): void {
    for (const process of this.processes) {
      this.after(this.between(1, 3), () => process.hear());
    }
  }
}

export class VirtualProcess {
  readonly world: World;
  readonly name: string;
  /** Milliseconds by which its clock is wrong; the library itself uses the server's clock. */
  readonly skew: number;
  readonly listeners: Set<Signal> = new Set();
  diedAt: number | undefined;
  resumedAt = 0;
  #deafUntil = 0;

  constructor(world: World, name: string) {
    this.world = world;
    this.name = name;
    this.skew = world.random.chance(0.3) ? 3_600_000 : 0;
  }

  spawn(script: Script): void {
    this.world.after(0, () => this.#resume(script));
  }

  #resume(script: Script): void {
    const { world } = this;
    if (this.diedAt !== undefined) return;
    if (this.resumedAt > world.now) {
      world.after(this.resumedAt - world.now, () => this.#resume(script));
      return;
    }
    const { done, value } = script.next();
    if (done) return;
    const { ms, signal } = value;
    let over = false;
    const goOn = (): void => {
      if (over) return;
      over = true;
      if (signal) signal.onSet = undefined;
      this.#resume(script);
    };
    if (signal) signal.onSet = () => world.after(0, goOn);
    world.after(signal?.isSet ? 0 : ms, goOn);
  }

  kill(): void {
    this.diedAt ??= this.world.now;
  }

  pause(ms: number): void {
    this.resumedAt = Math.max(this.resumedAt, this.world.now + ms);
  }

  get isPaused(): boolean {
    return this.resumedAt > this.world.now;
  }

  hear(): void {
    if (this.world.now < this.#deafUntil) return;
    for (const signal of this.listeners) signal.set();
  }

  /** Cuts the connection of the subscriber. When there is a new one, the process cannot know what it has missed. */
  deafen(): void {
    this.#deafUntil = this.world.now + DEAF;
    this.world.after(DEAF, () => {
      if (!this.world.has("gap-unnoticed")) this.hear();
    });
  }

  /**
   * Runs something at the server. The result is undefined if no answer came in time: then it may have been done, or may
   * still be done. After a lost reply it is done twice, as ioredis does; after a transient error it is tried again,
   * unless `toTransient` is the answer for that.
   */
  *call<T>(run: () => T, toTransient?: T): Script<T | undefined> {
    const { world } = this;
    const { random } = world;
    const signal = new Signal();
    let answer: T | undefined;
    const reply = (value: T): void =>
      world.after(world.between(1, 3), () => {
        answer = value;
        signal.set();
      });
    const arrive = (again: boolean): void => {
      if (again && this.diedAt !== undefined) return;
      if (random.chance(0.04)) {
        if (toTransient !== undefined) reply(toTransient);
        else world.after(world.between(2, 5), () => arrive(again));
        return;
      }
      const value = run();
      if (!again && random.chance(0.08)) world.after(RECONNECT, () => arrive(true));
      else reply(value);
    };
    const late = random.chance(0.05) ? world.between(50, 500) : world.between(1, 3);
    if (!random.chance(0.02)) world.after(late, () => arrive(false));
    yield { ms: COMMAND_TIMEOUT, signal };
    return answer;
  }

  /** Repeats the call until there is an answer. */
  *insist<T>(run: () => T, toTransient?: T): Script<T> {
    for (;;) {
      const answer = yield* this.call(run, toTransient);
      if (answer !== undefined) return answer;
    }
  }
}
