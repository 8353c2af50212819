/** A priority queue of entries by due time. Any entry can be moved or removed: it is an indexed binary heap. */

export interface TimerEntry {
  /** Monotonic milliseconds. Changed through {@link TimerHeap.put} only. */
  dueAt: number;
  /** Where the entry is in the heap; -1 outside. Kept by the heap. */
  index: number;
}

export class TimerHeap<E extends TimerEntry> {
  readonly #heap: E[] = [];

  /** The entry that is due first. */
  get first(): E | undefined {
    return this.#heap[0];
  }

  /** Adds an entry, or moves an entry that is in the heap. */
  put(entry: E, dueAt: number): void {
    entry.dueAt = dueAt;
    const isNew = entry.index < 0;
    if (isNew) entry.index = this.#heap.push(entry) - 1;
    this.#rise(entry);
    if (!isNew) this.#sink(entry);
  }

  remove(entry: E): void {
    if (entry.index < 0) return;
    const last = this.#heap.pop() as E;
    if (last !== entry) {
      this.#set(entry.index, last);
      this.#rise(last);
      this.#sink(last);
    }
    entry.index = -1;
  }

  #set(index: number, entry: E): void {
    this.#heap[index] = entry;
    entry.index = index;
  }

  #rise(entry: E): void {
    while (entry.index > 0) {
      const above = this.#heap[(entry.index - 1) >> 1] as E;
      if (above.dueAt <= entry.dueAt) return;
      this.#swap(above, entry);
    }
  }

  #sink(entry: E): void {
    for (;;) {
      const left = this.#heap[2 * entry.index + 1];
      const right = this.#heap[2 * entry.index + 2];
      const below = right && left && right.dueAt < left.dueAt ? right : left;
      if (!below || below.dueAt >= entry.dueAt) return;
      this.#swap(entry, below);
    }
  }

  #swap(above: E, below: E): void {
    const index = above.index;
    this.#set(below.index, above);
    this.#set(index, below);
  }
}
