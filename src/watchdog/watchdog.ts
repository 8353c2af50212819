/**
 * Keeps leases alive, and notices when one has ended. One timer for all holds of a client.
 *
 * Owns when something is due and how renewals travel (100 to a command). What a due hold means is the holder's
 * business: it checks its local deadlines first, since a timer that fires late must not renew what is lost already.
 */
import { type Clock, type Instant, instant } from "../base/clock.js";
import { Agenda, type Entry } from "./agenda.js";

const BATCH = 100;

/** One owner's holds on one lock, as the watchdog sees them. */
export interface Guarded extends Entry {
  /** Deals with deadlines that have passed; returns the renewals that are due by `now`. */
  due(now: number): readonly Renewal[];
  /** When {@link due} wants to be called next, in monotonic milliseconds; Infinity for never. */
  nextDue(): number;
  /** The server's word on a renewal that was sent at `sent`: 1 renewed, 0 gone, -1 taken by another. */
  renewed(renewal: Renewal, word: number, sent: Instant): void;
  /** No usable answer to a renewal. */
  notRenewed(cause: unknown): void;
}

/** Sends renewals of one kind of lock; resolves with one word for each. */
export interface Renewer {
  renew(renewals: readonly Renewal[]): Promise<readonly number[]>;
}

export interface Renewal {
  readonly holder: Guarded;
  readonly renewer: Renewer;
  /** The lock's key. */
  readonly key: string;
  /** The owner's field in it. */
  readonly field: string;
  /** Further keys that the hold is made of. */
  readonly besides: readonly string[];
}

export interface WatchdogOptions {
  readonly clock: Clock;
  /** Entries due within this many milliseconds are dealt with together. */
  readonly slack: number;
  /** What must not share a command: the slot, on a cluster. */
  readonly groupOf: (key: string) => number;
  readonly outside: (fn: () => void) => void;
}

export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #agenda = new Agenda<Guarded>();
  #armedFor = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** Puts a holder at its place in time, or takes it out when nothing is due any more. */
  watch(holder: Guarded): void {
    const dueAt = holder.nextDue();
    if (dueAt === Number.POSITIVE_INFINITY) {
      this.#agenda.remove(holder);
      return;
    }
    this.#agenda.put(holder, dueAt);
    this.#arm();
  }

  close(): void {
    this.#cancel?.();
    for (const holder of this.#agenda) this.#agenda.remove(holder);
  }

  /** Arms the timer if something is due before it fires. One that fires early is cheaper than one moved at each call. */
  #arm(): void {
    const first = this.#agenda.first;
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
    const near: Guarded[] = [];
    for (let first = this.#agenda.first; first && first.dueAt <= horizon; first = this.#agenda.first) {
      this.#agenda.remove(first);
      near.push(first);
    }
    const renewals: Renewal[] = [];
    for (const holder of near) {
      renewals.push(...holder.due(horizon));
      this.watch(holder);
    }
    for (const batch of this.#batches(renewals)) this.#send(batch);
    this.#arm();
  }

  *#batches(renewals: readonly Renewal[]): Iterable<Renewal[]> {
    const open = new Map<Renewer, Map<number, Renewal[]>>();
    for (const renewal of renewals) {
      const groups = open.get(renewal.renewer) ?? new Map<number, Renewal[]>();
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

  #send(batch: readonly Renewal[]): void {
    const sent = instant(this.#options.clock);
    const [first] = batch;
    first?.renewer.renew(batch).then(
      (words) => {
        for (const [i, renewal] of batch.entries()) renewal.holder.renewed(renewal, words[i] ?? 0, sent);
      },
      (error: unknown) => {
        for (const renewal of batch) renewal.holder.notRenewed(error);
      },
    );
  }
}
