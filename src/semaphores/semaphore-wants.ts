/** What a call can want of a plain semaphore: a number of permits, or all that are free. */
import { semaphoreAcquire, semaphoreDrain, semaphoreUndo } from "../scripts/generated.js";
import { type AnyStep, MARKER_TTL, type SharedNumber } from "./number.js";
import type { Attempt, Want } from "./request.js";

/** Takes a number of permits. Its tries count as one call, because they have one marker. */
export class Take implements Want<number> {
  readonly permits: number;
  readonly #number: SharedNumber;
  readonly id: string;

  constructor(number: SharedNumber, permits: number) {
    this.#number = number;
    this.id = number.marker();
    this.permits = permits;
  }

  step(): AnyStep {
    const keys = { permits: this.#number.key, marker: this.id };
    return { script: semaphoreAcquire, keys, args: { count: this.permits, markerTtl: MARKER_TTL } };
  }

  read(reply: unknown): Attempt<number> {
    const [word, free = 0] = (reply as unknown[]).map(Number);
    if (word !== 1) return { granted: false, ttl: -1, isUnset: word === 0 && free === 0 };
    return { granted: true, value: this.permits, remaining: free };
  }

  undo(): Promise<unknown> {
    return undo(this.#number, this.id);
  }
}

/** Takes all permits that are free. */
export class Drain implements Want<number> {
  readonly isUntold = true;
  readonly permits = 1;
  readonly #number: SharedNumber;
  readonly id: string;

  constructor(number: SharedNumber) {
    this.#number = number;
    this.id = number.marker();
  }

  step(): AnyStep {
    const keys = { permits: this.#number.key, marker: this.id };
    return { script: semaphoreDrain, keys, args: { markerTtl: MARKER_TTL } };
  }

  read(reply: unknown): Attempt<number> {
    return { granted: true, value: Number(reply) };
  }

  undo(): Promise<unknown> {
    return undo(this.#number, this.id);
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
