/**
 * A first-in, first-out line of actions. Each action may be delayed, and later actions wait behind it, as the bytes of
 * one connection do.
 */
export class DelayLine {
  readonly #waiting: { readonly due: number; readonly action: () => void }[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** Runs `action` after `delay` ms, but never before earlier actions; at once if there is neither. */
  push(delay: number, action: () => void): void {
    if (delay <= 0 && this.#waiting.length === 0) {
      action();
      return;
    }
    this.#waiting.push({ due: performance.now() + delay, action });
    this.#arm();
  }

  /** Runs all waiting actions now. */
  flush(): void {
    this.#runUntil(Number.POSITIVE_INFINITY);
  }

  /** Forgets all waiting actions. */
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
