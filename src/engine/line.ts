/**
 * The waiters of one process for one thing, first come first served. Only the first talks to Redis, so that ten
 * thousand waiters cost one server try for each release; where the server keeps places, each tries once to get one.
 */
import type { Clock } from "../base/clock.js";
import { List } from "../base/list.js";
import type { Limited, TimeLimit } from "../base/time-limit.js";
import type { Contender, Standing } from "./contender.js";
import { Shares } from "./shares.js";
import { Streak } from "./streak.js";
import { listen, listenAlone, type Waiter } from "./waiter.js";

/**
 * Milliseconds for which those behind a holder of this process do not listen for releases yet, but leave it to him to tell
 * them: most holds are short.
 */
const TRUST = 10;

export interface LineOptions {
  readonly name: string;
  readonly clock: Clock;
  /** Milliseconds: places are refreshed with the first try after so long. */
  readonly refreshEvery: number;
  /** Where it is kept for a while when it has become empty. */
  readonly linger: TimeLimit<Line>;
  /** Told when that is over. */
  readonly idle: (line: Line) => void;
}

export class Line implements Limited {
  /** Among those that linger. */
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  endsAt = 0;
  /** Calls that use this line, whether they stand in it yet or not; kept by {@link Lines}. */
  calls = 0;
  readonly name: string;
  readonly #options: LineOptions;
  /** In order of arrival. */
  readonly #waiters = new List<Waiter>();
  /** Something may have changed since the last try of the first one began. */
  #hinted = true;
  /** When that calls for a try. */
  #tryAt = 0;
  /** Until then no try is due without a hint: the lock is known to be held. */
  #quietUntil = 0;
  #refreshedAt: number;
  #unsubscribe: (() => void) | undefined;
  /** The server has confirmed the common subscription, so a release since then is a hint. */
  #listening = false;
  /** Made when a grant leaves something over. */
  #shares: Shares | undefined;
  /** Of grants to this process; made when more than one is here. */
  #streak: Streak | undefined;
  /** Who was granted it by the command of who had it before, or is about to be. */
  #heir: Waiter | undefined;

  constructor(options: LineOptions) {
    this.name = options.name;
    this.#options = options;
    this.#refreshedAt = options.clock.mono();
  }

  isHead(waiter: Waiter): boolean {
    return this.#waiters.first === waiter;
  }

  enter(waiter: Waiter): void {
    if (!this.#waiters.add(waiter)) return;
    this.#options.linger.running.remove(this);
    if (waiter.contender.standing.places) waiter.hinted = true;
  }

  /** `undecided`: the waiter leaves while a try of its own is in flight. */
  leave(waiter: Waiter, undecided: boolean): void {
    const wasHead = this.isHead(waiter);
    waiter.unsubscribe?.();
    waiter.unsubscribe = undefined;
    this.#shares?.unfeed(waiter);
    this.#waiters.remove(waiter);
    // It was told of something that it has not tried for.
    if (waiter.hinted && !waiter.contender.standing.places) this.hint();
    if (!wasHead) return;
    const { first } = this.#waiters;
    if (undecided || (first?.contender.standing.marked && !waiter.granted)) this.#hinted = true;
    // What was too little for the one may be enough for the next.
    if (first && first.contender.share < waiter.contender.share) this.#hinted = true;
    if (first) first.resume();
    else if (waiter.granted) this.#linger(waiter.contender.standing);
    else this.#stop();
  }

  /** It is empty still. */
  expire(): void {
    this.#stop();
    this.#options.idle(this);
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
    if (!waiter.contender.standing.places) return [];
    const now = this.#options.clock.mono();
    if (now - this.#refreshedAt < this.#options.refreshEvery) return [];
    this.#refreshedAt = now;
    return this.#waiters.all().flatMap((other) => (other === waiter ? [] : (other.contender.place ?? [])));
  }

  /** The outcome of a try is not to be taken: another one is due at once. */
  again(waiter: Waiter): void {
    // Nobody was told of an offer that came to nothing.
    if (waiter === this.#heir) this.#streak?.expectNothing();
    if (this.isHead(waiter) || !waiter.contender.standing.places) this.hint();
    else waiter.hinted = true;
  }

  /** See {@link Engine.handOver}. */
  handOver(pass: (contender: Contender<unknown>, offered: boolean) => boolean): void {
    const { first } = this.#waiters;
    if (!first || first.ended) return;
    this.#streak ??= new Streak(this.#options.clock, first.contender.standing.marked);
    const passage = this.#streak.next();
    if (passage === "release") return;
    const offered = passage === "offer";
    const isPassed = pass(first.contender, offered);
    if (offered) {
      this.#streak.asked(this.calls);
      if (this.#listening) this.#streak.expectEcho();
    }
    if (isPassed) {
      this.#heir = first;
      first.hint();
    } else if (offered) {
      // Who is not granted by the same command must not try right behind it either.
      this.#yield(1);
    }
  }

  /** See {@link Engine.released}. */
  released(yields: boolean): void {
    if (yields) this.#yield(1);
    // Who comes next need not wait for the message.
    else if (!this.#listening || !this.#waiters.first) this.hint();
  }

  /** A waiter has what it wants, for at most `ms` unless renewed. `beside`: how much is left for those behind it. */
  granted(waiter: Waiter, ms: number, beside = 0): void {
    const { places, marked, together, passed } = waiter.contender.standing;
    this.#shares?.unfeed(waiter);
    if (waiter.list && (together || beside > 0)) {
      this.#shares ??= new Shares(this.#waiters);
      this.#shares.feed(waiter, together ? Number.POSITIVE_INFINITY : beside);
    }
    waiter.granted = true;
    if (!this.isHead(waiter)) return;
    if (passed && this.#heir !== waiter && (this.calls > 1 || this.#streak)) {
      this.#streak ??= new Streak(this.#options.clock, marked);
      this.#streak.begin(this.calls);
    }
    this.#heir = undefined;
    this.#streak?.endCourtesy();
    // Who is not told of its release has to look, and so has who comes later and could be granted it as well.
    // And one that the server is to know of has to tell it.
    const isTold = (this.#listening && !marked) || places;
    if (together || !(isTold || passed)) this.#hinted = true;
    else this.#quietUntil = this.#options.clock.mono() + (isTold ? ms : Math.min(ms, TRUST));
  }

  /**
   * The lock is held by another: no try for `ms` but on a hint, except by waiters that were overlooked. `others`: it is
   * free, and so many outside this process go first.
   */
  refused(waiter: Waiter, ms: number, overlooked: readonly string[], others = 0): void {
    // Not in line yet, it tries again as soon as it is.
    if (!waiter.list) return;
    this.#shares?.unfeed(waiter);
    this.#heir = undefined;
    if (this.isHead(waiter)) this.#quietUntil = this.#options.clock.mono() + ms;
    if (waiter.contender.standing.places) listenAlone(waiter);
    else this.#unsubscribe ??= this.#subscribeAll(waiter);
    if (overlooked.length > 0) this.#hintPlaces(new Set(overlooked));
    if (others > 0) this.#yield(others);
  }

  /** Something may have changed: the first one tries again. */
  hint(): void {
    const courtesy = this.#streak?.heard();
    if (courtesy !== undefined) return this.#tryIn(courtesy);
    const pause = this.#waiters.first?.contender.pause ?? 0;
    // One that was to come soon anyway does not come later.
    this.#tryIn(this.#hinted ? Math.min(pause, this.#tryAt - this.#options.clock.mono()) : pause);
  }

  /** So many others have heard of the release as well, and have waited for longer. */
  #yield(others: number): void {
    this.#tryIn(this.#streak?.yield(others) ?? 0);
  }

  /** The first one is to try in `ms`, unless it has reason to do so before. */
  #tryIn(ms: number): void {
    this.#tryAt = ms > 0 ? this.#options.clock.mono() + ms : 0;
    this.#hinted = true;
    this.#waiters.first?.resume();
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
      const echo = this.#streak?.echo() ?? 0;
      if (echo === 0) this.hint();
      else if (!this.#hinted) this.#tryIn(echo);
    };
    return listen(waiter, hint, () => this.#waiters.all());
  }

  /** The last one has the lock now. Where it has gone from hand to hand, others are likely to be back soon. */
  #linger({ marked }: Standing): void {
    // Where the server is to know who waits, whoever comes next has to tell it at once.
    if (this.#streak && !marked) this.#options.linger.start(this);
    else this.#stop();
  }

  #stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#streak = undefined;
    this.#listening = false;
    this.#hinted = true;
    this.#tryAt = 0;
  }
}
