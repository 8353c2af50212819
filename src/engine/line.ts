/**
 * The waiters of one process for one thing, first come first served. Only the first talks to Redis, so that ten
 * thousand waiters cost one server try for each release; where the server keeps places, each tries once to get one.
 */
import type { Clock } from "../base/clock.js";
import { List } from "../base/list.js";
import type { Waiter } from "./waiter.js";

export interface LineOptions {
  readonly clock: Clock;
  /** Milliseconds: places are refreshed with the first try after so long. */
  readonly refreshEvery: number;
  /** The server forbids the channel: nobody here can be woken. */
  readonly refused: (error: unknown) => unknown;
}

export class Line {
  /** Calls that use this line, whether they stand in it yet or not; kept by the engine. */
  calls = 0;
  readonly #options: LineOptions;
  /** In order of arrival. */
  readonly #waiters = new List<Waiter>();
  /** Something may have changed since the last try of the first one began. */
  #hinted = true;
  /** When that calls for a try. */
  #tryAt = 0;
  /** Until then no try is due unless there is a hint: the lock is known to be held. */
  #quietUntil = 0;
  #refreshedAt: number;
  #unsubscribe: (() => void) | undefined;
  /** The server has confirmed the common subscription, so a release since then is a hint. */
  #listening = false;
  /** How much those who are fed and have not tried yet want; they stand one behind the other. */
  #fed = 0;
  #lastFed: Waiter | undefined;

  constructor(options: LineOptions) {
    this.#options = options;
    this.#refreshedAt = options.clock.mono();
  }

  isHead(waiter: Waiter): boolean {
    return this.#waiters.first === waiter;
  }

  enter(waiter: Waiter): void {
    if (this.#waiters.add(waiter) && waiter.contender.standing.places) waiter.hinted = true;
  }

  /** `undecided`: the waiter leaves while a try of its own is in flight. */
  leave(waiter: Waiter, undecided: boolean): void {
    const wasHead = this.isHead(waiter);
    waiter.unsubscribe?.();
    waiter.unsubscribe = undefined;
    this.#unfeed(waiter);
    this.#waiters.remove(waiter);
    // It was told of something that it has not tried for.
    if (waiter.hinted && !waiter.contender.standing.places) this.hint();
    if (!wasHead) return;
    const { first } = this.#waiters;
    if (undecided || first?.contender.standing.marked) this.#hinted = true;
    // What was too little for the one may be enough for the next.
    if (first && first.contender.share < waiter.contender.share) this.#hinted = true;
    if (first) first.resume();
    else this.#stop();
  }

  /** Milliseconds for which no try of this waiter is due: 0 when one is, Infinity until it is woken. */
  pause(waiter: Waiter): number {
    if (waiter.hinted) return 0;
    if (!this.isHead(waiter)) return Number.POSITIVE_INFINITY;
    const due = this.#hinted ? this.#tryAt : this.#quietUntil;
    return due === 0 ? 0 : Math.max(0, due - this.#options.clock.mono());
  }

  /** A try begins: hints up to here are spent on it. Returns the places that it has to refresh. */
  trying(waiter: Waiter): readonly string[] {
    waiter.hinted = false;
    if (!this.isHead(waiter)) return [];
    this.#hinted = false;
    this.#tryAt = 0;
    const now = this.#options.clock.mono();
    if (!waiter.contender.standing.places || now - this.#refreshedAt < this.#options.refreshEvery) return [];
    this.#refreshedAt = now;
    return this.#waiters.all().flatMap((other) => (other === waiter ? [] : (other.contender.place ?? [])));
  }

  /** The outcome of a try is not to be taken: another one is due at once. */
  again(waiter: Waiter): void {
    if (this.isHead(waiter) || !waiter.contender.standing.places) this.hint();
    else waiter.hinted = true;
  }

  /** A waiter has what it wants, for at most `ms` unless renewed. `beside`: how much is left for those behind it. */
  granted(waiter: Waiter, ms: number, beside = 0): void {
    const { places, together } = waiter.contender.standing;
    this.#unfeed(waiter);
    if (waiter.list) this.#shareOut(waiter, together ? Number.POSITIVE_INFINITY : beside);
    if (!this.isHead(waiter)) return;
    // Who is not told of its release has to look, and so has who comes later and could be granted it as well.
    if ((this.#listening || places) && !together) this.#quietUntil = this.#options.clock.mono() + ms;
    else this.#hinted = true;
  }

  /** The lock is held by another: no try for `ms` but on a hint, except by waiters that were overlooked. */
  refused(waiter: Waiter, ms: number, overlooked: readonly string[]): void {
    // Not in line yet, it tries again as soon as it is.
    if (!waiter.list) return;
    this.#unfeed(waiter);
    if (this.isHead(waiter)) this.#quietUntil = this.#options.clock.mono() + ms;
    if (waiter.contender.standing.places) waiter.unsubscribe ??= this.#subscribeOne(waiter);
    else this.#unsubscribe ??= this.#subscribeAll(waiter);
    if (overlooked.length > 0) this.#hintPlaces(new Set(overlooked));
  }

  /** Something may have changed: the first one tries again. */
  hint(): void {
    const { first } = this.#waiters;
    const pause = first?.contender.pause ?? 0;
    if (!this.#hinted && pause > 0) this.#tryAt = this.#options.clock.mono() + pause;
    this.#hinted = true;
    first?.resume();
  }

  /**
   * Those next in line try at once, as far as it goes round: none is passed by a later one that wants less. What was left
   * over at a grant includes what is on its way to those who are fed, for they come after it.
   */
  #shareOut(granted: Waiter, amount: number): void {
    let left = amount - this.#fed;
    const start = this.#lastFed ? this.#lastFed.next : this.#firstBut(granted);
    for (let next = start; next; next = next.next) {
      left -= next.contender.share;
      if (left < 0) return;
      this.#fed += next.contender.share;
      this.#lastFed = next;
      next.fed = true;
      next.hint();
    }
  }

  #firstBut(waiter: Waiter): Waiter | undefined {
    const { first } = this.#waiters;
    return first === waiter ? first.next : first;
  }

  /** It has tried, or has gone. */
  #unfeed(waiter: Waiter): void {
    if (!waiter.fed) return;
    waiter.fed = false;
    this.#fed -= waiter.contender.share;
    if (this.#lastFed === waiter) this.#lastFed = waiter.prev?.fed ? waiter.prev : undefined;
  }

  #hintPlaces(places: ReadonlySet<string>): void {
    for (const waiter of this.#waiters.all()) {
      const { place } = waiter.contender;
      if (place !== undefined && places.has(place)) waiter.hint();
    }
  }

  #subscribeAll(waiter: Waiter): () => void {
    const hint = () => {
      this.#listening = true;
      this.hint();
    };
    return this.#subscribe(waiter, hint, () => this.#waiters.all());
  }

  #subscribeOne(waiter: Waiter): () => void {
    return this.#subscribe(
      waiter,
      () => waiter.hint(),
      () => [waiter],
    );
  }

  #subscribe(by: Waiter, hint: () => void, whom: () => readonly Waiter[]): () => void {
    const { refused } = this.#options;
    const end = (error: unknown) => {
      for (const waiter of whom()) waiter.end(refused(error));
    };
    return by.contender.listen({ hint, refused: end });
  }

  #stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#listening = false;
    this.#hinted = true;
    this.#tryAt = 0;
  }
}
