/** Measures how slow the machine is: how long an untouched server takes to answer, seen from the soak's own process. */
import type { Redis } from "ioredis";

/** Milliseconds between two looks. */
const EVERY = 50;

export class Yardstick {
  readonly #witness: Redis;
  readonly #timer: NodeJS.Timeout;
  #longest = 0;
  #asked: number | undefined;

  constructor(witness: Redis) {
    this.#witness = witness;
    this.#timer = setInterval(() => void this.#look(), EVERY);
  }

  /** Longest answer time since the last `take`, in milliseconds. */
  get longest(): number {
    return this.#longest;
  }

  /** Returns the longest answer time and starts again. */
  take(): number {
    const longest = this.#longest;
    this.#longest = 0;
    return longest;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#asked !== undefined) return;
    this.#asked = performance.now();
    await this.#witness.ping().catch(() => {}); // rejects when the soak is over
    this.#longest = Math.max(this.#longest, performance.now() - this.#asked);
    this.#asked = undefined;
  }
}
