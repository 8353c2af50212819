/** How slow the machine is: how long a server that no fault touches takes for an answer, as the soak's own process sees it. */
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

  /** The longest time for an answer since it was taken last, in milliseconds. */
  get longest(): number {
    return this.#longest;
  }

  /** Begins anew, and returns what was the longest. */
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
    await this.#witness.ping().catch(() => {}); // the soak is over
    this.#longest = Math.max(this.#longest, performance.now() - this.#asked);
    this.#asked = undefined;
  }
}
