/** The holds that a client must give back before it is closed. */
import { type Item, List } from "./list.js";

export class LiveSet<T extends Item> {
  readonly #live = new List<T>();
  #onIdle: (() => void)[] = [];
  readonly #onAdd: () => void;
  readonly #onRemove: () => void;

  /** The functions are called for each item that is added or removed. */
  constructor(onAdd: () => void, onRemove: () => void) {
    this.#onAdd = onAdd;
    this.#onRemove = onRemove;
  }

  /** All items, or the first `most`, in the order in which they were added. */
  all(most?: number): T[] {
    return this.#live.all(most);
  }

  add(item: T): void {
    if (this.#live.add(item)) this.#onAdd();
  }

  remove(item: T): void {
    if (!this.#live.remove(item)) return;
    this.#onRemove();
    if (this.#live.first || this.#onIdle.length === 0) return;
    for (const callback of this.#onIdle.splice(0)) callback();
  }

  /** Resolves when the set is empty. */
  idle(): Promise<void> {
    return this.#live.first ? new Promise((resolve) => this.#onIdle.push(resolve)) : Promise.resolve();
  }
}
