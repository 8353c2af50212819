/**
 * Which locks a call for several may not try all at once: those that another such call of this client tries so, and for a
 * while those of a call that was refused one of them. Where others are at work a call takes more care: it does not take the
 * rest of its locks just to give them back.
 */

/** Milliseconds. */
const MEMORY = 1_000;
const NEVER = Number.NEGATIVE_INFINITY;

export class Contention {
  /** When it was last met at each key, in monotonic milliseconds; the oldest first. */
  readonly #met = new Map<string, number>();
  /** The keys of the calls under way that began with all their locks at once. */
  readonly #tried = new Set<string>();

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

  /** Whether a call may try all these locks at once; if so, {@link leave} must follow when it is over. */
  enter(keys: ReadonlySet<string>, now: number): boolean {
    for (const key of keys) {
      if (this.#tried.has(key) || now - (this.#met.get(key) ?? NEVER) < MEMORY) return false;
    }
    for (const key of keys) this.#tried.add(key);
    return true;
  }

  /** The call is over. */
  leave(keys: ReadonlySet<string>): void {
    for (const key of keys) this.#tried.delete(key);
  }
}
