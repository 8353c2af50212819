/** A priority queue of things that are due at a time, any of which can be moved or taken out: an indexed binary heap. */

export interface Entry {
  /** Monotonic milliseconds. Changed through {@link Agenda.put} only. */
  dueAt: number;
  /** Where the entry stands in the heap; -1 outside. Kept by the agenda. */
  place: number;
}

export class Agenda<E extends Entry> {
  readonly #heap: E[] = [];

  get first(): E | undefined {
    return this.#heap[0];
  }

  [Symbol.iterator](): Iterator<E> {
    return [...this.#heap][Symbol.iterator]();
  }

  /** Adds an entry, or moves one that is in. */
  put(entry: E, dueAt: number): void {
    entry.dueAt = dueAt;
    if (entry.place < 0) entry.place = this.#heap.push(entry) - 1;
    this.#rise(entry);
    this.#sink(entry);
  }

  remove(entry: E): void {
    if (entry.place < 0) return;
    const last = this.#heap.pop() as E;
    if (last !== entry) {
      this.#set(entry.place, last);
      this.#rise(last);
      this.#sink(last);
    }
    entry.place = -1;
  }

  #set(place: number, entry: E): void {
    this.#heap[place] = entry;
    entry.place = place;
  }

  #rise(entry: E): void {
    while (entry.place > 0) {
      const above = this.#heap[(entry.place - 1) >> 1] as E;
      if (above.dueAt <= entry.dueAt) return;
      this.#swap(above, entry);
    }
  }

  #sink(entry: E): void {
    for (;;) {
      const left = this.#heap[2 * entry.place + 1];
      const right = this.#heap[2 * entry.place + 2];
      const below = right && left && right.dueAt < left.dueAt ? right : left;
      if (!below || below.dueAt >= entry.dueAt) return;
      this.#swap(entry, below);
    }
  }

  #swap(above: E, below: E): void {
    const place = above.place;
    this.#set(below.place, above);
    this.#set(place, below);
  }
}
