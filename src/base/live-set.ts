/**
 * What a client has and must end or give back before it is closed: holds, permits, calls that wait. While there is something
 * in it, the client keeps its connections, and tells others of it.
 */

/** The client, as far as it has to know what it has. */
interface Client {
  readonly runner: { readonly alive: { need(): void; release(): void } };
  readonly presence: { begin(): void };
}

/** After so many removals more than it has items the map is made anew. */
const SPARE = 100;

export class LiveSet<T> {
  #live = new Map<unknown, T>();
  /** Removals since the map was made. */
  #removed = 0;
  #onIdle: (() => void)[] = [];
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** All items, in the order in which they were added. */
  all(): T[] {
    return [...this.#live.values()];
  }

  /** The item that was added under this key. */
  get(key: unknown): T | undefined {
    return this.#live.get(key);
  }

  /** Adds an item, under a key if there can be only one of that. */
  add(item: T, key: unknown = item): void {
    if (this.#live.get(key) === item) return;
    this.#live.set(key, item);
    this.#client.runner.alive.need();
    this.#client.presence.begin();
  }

  /** Takes an item out, whether it was added under this key or under none. */
  remove(item: T, key: unknown = item): void {
    const isRemoved = this.#live.get(key) === item ? this.#live.delete(key) : this.#live.delete(item);
    if (!isRemoved) return;
    // A Map that is added to and deleted from all the time makes itself a new table each time, and each table knows the next.
    // One old table that got into the old space would keep all later ones, and what was in them, until a full collection.
    if (++this.#removed > this.#live.size + SPARE) {
      this.#live = new Map(this.#live);
      this.#removed = 0;
    }
    this.#client.runner.alive.release();
    if (this.#live.size > 0 || this.#onIdle.length === 0) return;
    for (const callback of this.#onIdle.splice(0)) callback();
  }

  /** Resolves when the set is empty. */
  idle(): Promise<void> {
    return this.#live.size > 0 ? new Promise((resolve) => this.#onIdle.push(resolve)) : Promise.resolve();
  }
}
