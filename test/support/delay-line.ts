/**
 * A first-in, first-out line of actions, each of which may be held back for a while. What comes later waits behind
 * it, as bytes of one connection do.
 */
export class DelayLine {
  readonly #waiting: { readonly due: number; readonly action: () => void }[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** Runs `action` in `delay` ms, but not before those that were pushed earlier; at once if nothing is in its way. */
  push(delay: number, action: () => void): void {
    if (delay <= 0 && this.#waiting.length === 0) {
      action();
      return;
    }
    this.#waiting.push({ due: performance.now() + delay, action });
    this.#arm();
  }

  /** Runs all that waits, now. */
  flush(): void {
    this.#runUntil(Number.POSITIVE_INFINITY);
  }

  /** Forgets all that waits. */
  clear(): void {
    this.#waiting.length = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(): void {
    const next = this.#waiting[0];
    if (next === undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#runUntil(performance.now());
      },
      Math.max(0, next.due - performance.now()),
    );
  }

  #runUntil(now: number): void {
    for (let next = this.#waiting[0]; next !== undefined && next.due <= now; next = this.#waiting[0]) {
      this.#waiting.shift();
      next.action();
    }
    if (this.#waiting.length === 0) this.clear();
    this.#arm();
  }
}
