/**
 * Remembers for a while which locks were wanted by a call for several that was refused one of them. Where others are at
 * work a call takes more care: it does not take the rest of its locks just to give them back.
 */

/** Milliseconds. */
const MEMORY = 1_000;

export class Contention {
  /** When it was last met at each key, in monotonic milliseconds; the oldest first. */
  readonly #met = new Map<string, number>();

  /** How many keys it remembers, of which some may be due to be forgotten. */
  get size(): number {
    return this.#met.size;
  }

  /** A call that wanted all these locks was refused one of them. */
  met(keys: Iterable<string>, now: number): void {
    for (const [key, at] of this.#met) {
      if (now - at < MEMORY) break;
      this.#met.delete(key);
    }
    for (const key of keys) {
      this.#met.delete(key);
      this.#met.set(key, now);
    }
  }

  /** Whether it was met at any of these keys a short while ago. */
  isKnown(keys: Iterable<string>, now: number): boolean {
    for (const key of keys) if (now - (this.#met.get(key) ?? -MEMORY) < MEMORY) return true;
    return false;
  }
}
