/** A priority queue by due time. Any entry can be moved or removed: it is an indexed binary heap. */
import type { Leased } from "./leased.js";

export class TimerHeap {
  readonly #heap: Leased[] = [];

  /** The entry that is due first. */
  get first(): Leased | undefined {
    return this.#heap[0];
  }

  /** Adds an entry, or moves an entry that is in the heap. */
  put(entry: Leased, dueAt: number): void {
    entry.dueAt = dueAt;
    const isNew = entry.index < 0;
    if (isNew) entry.index = this.#heap.push(entry) - 1;
    this.#rise(entry);
    if (!isNew) this.#sink(entry);
  }

  remove(entry: Leased): void {
    if (entry.index < 0) return;
    const last = this.#heap.pop() as Leased;
    if (last !== entry) {
      this.#set(entry.index, last);
      this.#rise(last);
      this.#sink(last);
    }
    entry.index = -1;
  }

  #set(index: number, entry: Leased): void {
    this.#heap[index] = entry;
    entry.index = index;
  }

  #rise(entry: Leased): void {
    while (entry.index > 0) {
      const above = this.#heap[(entry.index - 1) >> 1] as Leased;
      if (above.dueAt <= entry.dueAt) return;
      this.#swap(above, entry);
    }
  }

  #sink(entry: Leased): void {
    for (;;) {
      const left = this.#heap[2 * entry.index + 1];
      const right = this.#heap[2 * entry.index + 2];
      const below = right && left && right.dueAt < left.dueAt ? right : left;
      if (!below || below.dueAt >= entry.dueAt) return;
      this.#swap(entry, below);
    }
  }

  #swap(above: Leased, below: Leased): void {
    const index = above.index;
    this.#set(below.index, above);
    this.#set(index, below);
  }
}
