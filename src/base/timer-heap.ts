/**
 * Many that are due at some time, on one timer: a timer for each command would cost more than the command. Any entry can be
 * moved or removed, for it is an indexed binary heap.
 */
import type { Clock } from "./clock.js";
import { outside } from "./outside.js";

/** An entry; a heap sets both. */
export interface Due {
  /** Monotonic milliseconds. */
  dueAt: number;
  /** Its place in the heap, -1 outside. */
  index: number;
}

const NEVER = Number.POSITIVE_INFINITY;
/** When the timer of a heap fires that needs none. */
const LONG_AGO = Number.NEGATIVE_INFINITY;

export class TimerHeap<T extends Due> {
  readonly #clock: Clock;
  readonly #due: (first: T) => void;
  /** The entries, and behind them places that were used: an array that shrinks and grows all the time is made anew each time. */
  readonly #heap: (T | undefined)[] = [];
  #size = 0;
  #armedFor = NEVER;
  #cancel: (() => void) | undefined;

  /** `due`: moves or removes the first entry, which is due. */
  constructor(clock: Clock, due: (first: T) => void) {
    this.#clock = clock;
    this.#due = due;
  }

  /** The entry that is due first. */
  get first(): T | undefined {
    return this.#heap[0];
  }

  get size(): number {
    return this.#size;
  }

  /** A copy of all entries. */
  all(): T[] {
    return this.#heap.slice(0, this.#size) as T[];
  }

  /** Adds an entry, or moves an entry that is in the heap. */
  put(entry: T, dueAt: number): void {
    entry.dueAt = dueAt;
    const isNew = entry.index < 0;
    if (isNew) this.#set(this.#size++, entry);
    this.#rise(entry);
    if (!isNew) this.#sink(entry);
    if (dueAt < this.#armedFor) this.#arm();
  }

  /** A timer that fires early costs less than moving it with each entry. */
  remove(entry: T): void {
    if (entry.index < 0) return;
    const last = this.#heap[--this.#size] as T;
    this.#heap[this.#size] = undefined;
    if (last !== entry) {
      this.#set(entry.index, last);
      this.#rise(last);
      this.#sink(last);
    }
    entry.index = -1;
  }

  /** From now on nothing is due. */
  close(): void {
    this.#cancel?.();
    this.#armedFor = LONG_AGO;
  }

  #arm(): void {
    const { first } = this;
    if (!first) return;
    this.#cancel?.();
    this.#armedFor = first.dueAt;
    outside(() => {
      const ms = Math.max(0, Math.ceil(first.dueAt - this.#clock.mono()));
      this.#cancel = this.#clock.after(ms, () => this.#tick());
    });
  }

  #tick(): void {
    // What comes meanwhile needs no timer yet.
    this.#armedFor = LONG_AGO;
    const now = this.#clock.mono();
    for (let { first } = this; first && first.dueAt <= now; { first } = this) this.#due(first);
    this.#armedFor = NEVER;
    this.#arm();
  }

  #set(index: number, entry: T): void {
    this.#heap[index] = entry;
    entry.index = index;
  }

  #rise(entry: T): void {
    while (entry.index > 0) {
      const above = this.#heap[(entry.index - 1) >> 1] as T;
      if (above.dueAt <= entry.dueAt) return;
      this.#swap(above, entry);
    }
  }

  #sink(entry: T): void {
    for (;;) {
      const left = this.#heap[2 * entry.index + 1];
      const right = this.#heap[2 * entry.index + 2];
      const below = right && left && right.dueAt < left.dueAt ? right : left;
      if (!below || below.dueAt >= entry.dueAt) return;
      this.#swap(entry, below);
    }
  }

  #swap(above: T, below: T): void {
    const index = above.index;
    this.#set(below.index, above);
    this.#set(index, below);
  }
}
