/** What a call can want of a plain semaphore: a number of permits, or all that are free. */
import type { Attempt } from "../engine/acquisition.js";
import { semaphoreAcquire, semaphoreDrain, semaphoreUndo } from "../scripts/generated.js";
import { MARKER_TTL, type SharedNumber } from "./number.js";
import type { Want } from "./request.js";

/** Takes a number of permits. Its tries count as one call, because they have one marker. */
export class Take implements Want<number> {
  readonly permits: number;
  readonly #number: SharedNumber;
  readonly #marker: string;

  constructor(number: SharedNumber, permits: number) {
    this.#number = number;
    this.#marker = number.marker();
    this.permits = permits;
  }

  attempt(within: number): Promise<Attempt<number>> {
    const keys = { permits: this.#number.key, marker: this.#marker };
    const args = { count: this.permits, markerTtl: MARKER_TTL };
    const read = (reply: unknown): Attempt<number> => {
      const [word, free = 0] = (reply as unknown[]).map(Number);
      if (word !== 1) return { granted: false, ttl: -1 };
      return { granted: true, value: this.permits, lease: Number.POSITIVE_INFINITY, remaining: free };
    };
    const step = { script: semaphoreAcquire, keys, args };
    return this.#number.take(this.#marker, step, within, read, ({ granted }) => granted);
  }

  undo(): Promise<unknown> {
    return undo(this.#number, this.#marker);
  }
}

/** Takes all permits that are free. */
export class Drain implements Want<number> {
  readonly isUntold = true;
  readonly permits = 1;
  readonly #number: SharedNumber;
  readonly #marker: string;

  constructor(number: SharedNumber) {
    this.#number = number;
    this.#marker = number.marker();
  }

  attempt(within: number): Promise<Attempt<number>> {
    const keys = { permits: this.#number.key, marker: this.#marker };
    const step = { script: semaphoreDrain, keys, args: { markerTtl: MARKER_TTL } };
    const read = (reply: unknown): Attempt<number> => ({ granted: true, value: Number(reply), lease: 1 });
    const some = (attempt: Attempt<number>) => attempt.granted && attempt.value > 0;
    return this.#number.take(this.#marker, step, within, read, some);
  }

  undo(): Promise<unknown> {
    return undo(this.#number, this.#marker);
  }
}

function undo(number: SharedNumber, marker: string): Promise<unknown> {
  const { key, channel, publish } = number;
  const args = { markerTtl: MARKER_TTL, publish };
  return number.undo(marker, (id) => ({
    script: semaphoreUndo,
    keys: { permits: key, channel, marker: id },
    args,
  }));
}
