/** What a client has and must give back before it is closed. */
export class LiveSet<T> {
  readonly #live = new Map<unknown, T>();
  #onIdle: (() => void)[] = [];
  readonly #onAdd: () => void;
  readonly #onRemove: () => void;

  /** The functions are called for each item that is added or removed. */
  constructor(onAdd: () => void, onRemove: () => void) {
    this.#onAdd = onAdd;
    this.#onRemove = onRemove;
  }

  /** All items, or the first `most`, in the order in which they were added. */
  all(most: number = Number.POSITIVE_INFINITY): T[] {
    const items: T[] = [];
    for (const item of this.#live.values()) {
      if (items.length >= most) break;
      items.push(item);
    }
    return items;
  }

  /** The item that was added under this key. */
  get(key: unknown): T | undefined {
    return this.#live.get(key);
  }

  /** Adds an item, under a key if there can be only one of that. */
  add(item: T, key: unknown = item): void {
    if (this.#live.get(key) === item) return;
    this.#live.set(key, item);
    this.#onAdd();
  }

  /** Takes an item out, whether it was added under this key or under none. */
  remove(item: T, key: unknown = item): void {
    const isRemoved = this.#live.get(key) === item ? this.#live.delete(key) : this.#live.delete(item);
    if (!isRemoved) return;
    this.#onRemove();
    if (this.#live.size > 0 || this.#onIdle.length === 0) return;
    for (const callback of this.#onIdle.splice(0)) callback();
  }

  /** Resolves when the set is empty. */
  idle(): Promise<void> {
    return this.#live.size > 0 ? new Promise((resolve) => this.#onIdle.push(resolve)) : Promise.resolve();
  }
}
