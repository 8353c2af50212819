/**
 * Renews leases, and notices when a lease has ended. One timer serves all that the watchdog watches.
 *
 * The watchdog decides when something is due, and how renewals are sent (100 in one command). The {@link RenewalRules}
 * decide what is due and what it means. They check local deadlines first: a late timer must not renew a lost hold.
 */
import { type Clock, type Instant, instant } from "../base/clock.js";
import { isOfOneKey } from "../redis/failures.js";
import { type TimerEntry, TimerHeap } from "./timer-heap.js";

const BATCH = 100;

/** What the watchdog must know about a thing that it watches. All times are monotonic milliseconds. */
export interface RenewalRules<T> {
  /** Deals with a deadline that has passed; returns the renewal that is due by `now`, if one is. */
  due(watched: T, now: number): Renewal<T> | undefined;
  /** When {@link due} wants to be called next; Infinity for never. */
  nextDue(watched: T): number;
  /** The server's word on a renewal that was sent at `sent`: 1 renewed, 0 gone, -1 taken by another. */
  renewed(renewal: Renewal<T>, word: number, sent: Instant): void;
  /** A renewal got no usable answer. */
  notRenewed(renewal: Renewal<T>, cause: unknown): void;
  /** The server has renewed after all, by a renewal that was sent at `sent` and got no answer in time. */
  renewedLate(renewal: Renewal<T>, sent: Instant): void;
}

/** The server's word on each renewal of a batch. */
export type Words = readonly number[];

/** Sends renewals of one kind of lock; rejects without an answer in time, and gives `late` one that comes after that. */
export interface Renewer {
  renew(renewals: readonly Renewal<unknown>[], late: (words: Words) => void): Promise<Words>;
}

export interface Renewal<T> {
  readonly watched: T;
  readonly renewer: Renewer;
  /** The lock's key. */
  readonly key: string;
  /** The owner's field in the lock's hash. */
  readonly field: string;
  /** Which term of the deadline the renewal belongs to. */
  readonly term?: number;
  /** Further keys that the owner's holds consist of. */
  readonly extraKeys: readonly string[];
}

export interface WatchdogOptions {
  readonly clock: Clock;
  /** Entries due within this many milliseconds are dealt with together. */
  readonly slack: number;
  /** Keys of different groups must not share a command. On a cluster, the group is the slot. */
  readonly groupOf: (key: string) => number;
  readonly outside: (fn: () => void) => void;
}

export class Watchdog<T extends TimerEntry> {
  readonly #options: WatchdogOptions;
  readonly #rules: RenewalRules<T>;
  readonly #heap = new TimerHeap<T>();
  #armedFor = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(options: WatchdogOptions, rules: RenewalRules<T>) {
    this.#options = options;
    this.#rules = rules;
  }

  /** Schedules `watched` anew, or removes it if nothing is due any more. */
  watch(watched: T): void {
    const dueAt = this.#rules.nextDue(watched);
    if (dueAt === Number.POSITIVE_INFINITY) {
      this.#heap.remove(watched);
      return;
    }
    this.#heap.put(watched, dueAt);
    if (dueAt < this.#armedFor) this.#arm();
  }

  /** Nothing that it watches is held any more. */
  close(): void {
    this.#cancel?.();
  }

  /** Sets the timer if an entry is due before it fires. A timer that fires early costs less than moving it each time. */
  #arm(): void {
    const { first } = this.#heap;
    if (!first || first.dueAt >= this.#armedFor) return;
    this.#cancel?.();
    this.#armedFor = first.dueAt;
    const { clock, outside } = this.#options;
    outside(() => {
      this.#cancel = clock.after(Math.max(0, Math.ceil(first.dueAt - clock.mono())), () => this.#tick());
    });
  }

  #tick(): void {
    this.#armedFor = Number.POSITIVE_INFINITY;
    const now = this.#options.clock.mono();
    const horizon = now + this.#options.slack;
    const near: T[] = [];
    for (let first = this.#heap.first; first && first.dueAt <= horizon; first = this.#heap.first) {
      this.#heap.remove(first);
      near.push(first);
    }
    const renewals: Renewal<T>[] = [];
    for (const watched of near) {
      const renewal = this.#rules.due(watched, horizon);
      if (renewal) renewals.push(renewal);
      this.watch(watched);
    }
    for (const batch of this.#batches(renewals)) this.#send(batch);
    this.#arm();
  }

  *#batches(renewals: readonly Renewal<T>[]): Iterable<Renewal<T>[]> {
    const open = new Map<Renewer, Map<number, Renewal<T>[]>>();
    for (const renewal of renewals) {
      const groups = open.get(renewal.renewer) ?? new Map<number, Renewal<T>[]>();
      open.set(renewal.renewer, groups);
      const group = this.#options.groupOf(renewal.key);
      const batch = groups.get(group) ?? [];
      groups.set(group, batch);
      batch.push(renewal);
      if (batch.length < BATCH) continue;
      groups.delete(group);
      yield batch;
    }
    for (const groups of open.values()) yield* groups.values();
  }

  #send(batch: readonly Renewal<T>[]): void {
    const sent = instant(this.#options.clock);
    const [first] = batch;
    const late = (words: Words) => {
      for (const [i, renewal] of batch.entries())
        if ((words[i] ?? 0) > 0) this.#rules.renewedLate(renewal, sent);
    };
    const renewer = first?.renewer;
    renewer?.renew(batch, late).then(
      (words) => {
        for (const [i, renewal] of batch.entries()) this.#rules.renewed(renewal, words[i] ?? 0, sent);
      },
      (error: unknown) => {
        // A failure that may be one renewal's alone: the others are sent without it.
        if (batch.length > 1 && isOfOneKey(error)) for (const renewal of batch) this.#send([renewal]);
        else for (const renewal of batch) this.#rules.notRenewed(renewal, error);
      },
    );
  }
}
