/** What a client has to give back before it is closed. */
import { type Item, List } from "../base/list.js";

export class LiveSet<T extends Item> {
  readonly #live = new List<T>();
  #onIdle: (() => void)[] = [];
  readonly #onAdd: () => void;

  /** `onAdd` is told whenever something is in it from now on. */
  constructor(onAdd: () => void) {
    this.#onAdd = onAdd;
  }

  /** The first came first. */
  all(most?: number): T[] {
    return this.#live.all(most);
  }

  add(item: T): void {
    if (this.#live.add(item)) this.#onAdd();
  }

  remove(item: T): void {
    if (!this.#live.remove(item) || this.#live.first || this.#onIdle.length === 0) return;
    for (const callback of this.#onIdle.splice(0)) callback();
  }

  /** Resolves when there is nothing in it. */
  idle(): Promise<void> {
    return this.#live.first ? new Promise((resolve) => this.#onIdle.push(resolve)) : Promise.resolve();
  }
}
