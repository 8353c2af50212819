/**
 * The waiters of one process for one thing, first come first served. Only the first talks to Redis, so that ten
 * thousand waiters cost one server try for each release; where the server keeps a queue, each tries once to get a ticket.
 */
import type { Clock } from "../base/clock.js";
import { List } from "../base/list.js";
import type { SharedTimeout, Timed } from "../base/shared-timeout.js";
import type { Acquisition } from "./acquisition.js";
import { type Handoff, HandoffPolicy, SHORTEST_TURN } from "./handoff-policy.js";
import { type EndCall, listen, listenAlone } from "./listening.js";
import { PromisedPermits } from "./promised-permits.js";

export interface WaitQueueOptions {
  readonly name: string;
  readonly clock: Clock;
  /** Milliseconds: tickets are refreshed with the first try after so long. */
  readonly refreshEvery: number;
  /** Where it is kept for a while when it has become empty. */
  readonly kept: SharedTimeout<WaitQueue>;
  /** Told when that is over. */
  readonly idle: (queue: WaitQueue) => void;
  /** Ends a call with this reason. */
  readonly end: EndCall;
}

export class WaitQueue implements Timed {
  /** Among those that are kept. */
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  endsAt = 0;
  readonly name: string;
  /** Calls that belong to this queue, whether they stand in line or not. */
  calls = 0;
  /** Told when the last in line leaves without a grant: the server may not know of it, and so tell nobody. */
  whenLeft: (() => void) | undefined;
  readonly #options: WaitQueueOptions;
  readonly #advertised: boolean;
  /** Calls that do not stand in line: it is another's turn, or they re-enter. */
  readonly #unqueued = new List<Acquisition<unknown>>();
  /** In order of arrival. */
  readonly #waiters = new List<Acquisition<unknown>>();
  #policy: HandoffPolicy;
  #refreshedAt: number;
  #unsubscribe: (() => void) | undefined;
  /** The server has confirmed the common subscription, so a release since then is a message. */
  #listening = false;
  /** Made when a grant leaves permits over. */
  #permits: PromisedPermits | undefined;
  /** The waiter that is granted by the command of the holder before it, if that is under way. */
  #successor: Acquisition<unknown> | undefined;

  constructor(options: WaitQueueOptions, advertised: boolean) {
    this.name = options.name;
    this.#options = options;
    this.#advertised = advertised;
    this.#policy = new HandoffPolicy(advertised);
    this.#refreshedAt = options.clock.mono();
  }

  get first(): Acquisition<unknown> | undefined {
    return this.#waiters.first;
  }

  /** All calls of this queue, those that stand in line first. */
  all(): Acquisition<unknown>[] {
    return [...this.#waiters.all(), ...this.#unqueued.all()];
  }

  /** The call belongs to this queue from now on. */
  add(call: Acquisition<unknown>): void {
    call.queued = true;
    this.calls++;
    this.#unqueued.add(call);
  }

  /** The call stands in line from now on; `trying`: its try is on its way already. */
  enter(call: Acquisition<unknown>, trying = false): void {
    if (!this.#unqueued.remove(call)) return;
    this.#waiters.add(call);
    this.#options.kept.running.remove(this);
    if (trying) this.trying(call);
    else if (call.traits.serverQueued) call.hinted = true;
  }

  /** The call does not stand in line any more. `undecided`: a try of it is on its way. */
  leave(call: Acquisition<unknown>, undecided: boolean): void {
    const wasFirst = this.first === call;
    this.#permits?.settle(call);
    if (this.#waiters.remove(call)) this.#unqueued.add(call);
    call.unsubscribe?.();
    call.unsubscribe = undefined;
    // It was told of something that it has not tried for.
    if (call.hinted && !call.traits.serverQueued) this.hint();
    if (!wasFirst) return;
    const { first } = this;
    const isUnknown = first?.traits.advertised && !call.granted;
    // What was too little for the one may be enough for the next.
    const isEnough = first && first.permits < call.permits;
    // The server is to know of the next one before it forgets this one, whoever goes first.
    if (isUnknown) this.#policy.tryIn(0, this.#now);
    else if (undecided || isEnough) this.#policy.want();
    if (first) return first.resume();
    if (call.granted) return this.#keep(call);
    this.#stop();
    this.whenLeft?.();
  }

  /** The call is over. */
  remove(call: Acquisition<unknown>, undecided: boolean): void {
    this.leave(call, undecided);
    this.#unqueued.remove(call);
    call.queued = false;
    this.calls--;
  }

  /** It is empty still. */
  expire(): void {
    this.#stop();
    this.#options.idle(this);
  }

  /** Milliseconds for which no try of this call is due: 0 when one is, Infinity until it is woken. */
  due(call: Acquisition<unknown>): number {
    if (call.hinted) return 0;
    return this.first === call ? this.#policy.due(this.#now) : Number.POSITIVE_INFINITY;
  }

  /** A try begins, which knows of all that happened before it. Returns the tickets that it has to refresh. */
  trying(call: Acquisition<unknown>): readonly string[] {
    call.hinted = false;
    if (this.first !== call) return [];
    this.#policy.trying();
    if (!call.traits.serverQueued) return [];
    const now = this.#now;
    if (now - this.#refreshedAt < this.#options.refreshEvery) return [];
    this.#refreshedAt = now;
    return this.#waiters.all().flatMap((other) => (other === call ? [] : (other.ticket ?? [])));
  }

  /** The outcome of a try does not count: another one is due at once. */
  again(call: Acquisition<unknown>): void {
    if (this.#successor === call) this.#successor = undefined;
    if (this.first === call || !call.traits.serverQueued) this.hint();
    else call.hinted = true;
  }

  /** A call is granted what it wants, for at most `ms` unless renewed. `remaining` is left for those behind it. */
  granted(call: Acquisition<unknown>, ms: number, remaining = 0): void {
    const { serverQueued, advertised, shared, handoff } = call.traits;
    this.#permits?.settle(call);
    if (this.#waiters === call.list && (shared || remaining > 0)) {
      this.#permits ??= new PromisedPermits(this.#waiters);
      this.#permits.promise(call, shared ? Number.POSITIVE_INFINITY : remaining);
    }
    if (this.first !== call) return;
    const now = this.#now;
    const wasHandedOver = this.#successor === call;
    if (handoff && !wasHandedOver && (this.calls > 1 || this.#policy.active)) this.#policy.arrived(now);
    this.#successor = undefined;
    this.#policy.granted();
    const isTold = (this.#listening && !advertised) || serverQueued;
    // The next one tries at once if no message will come, if it can be granted as well, or if the server must know of it.
    if (shared || !(isTold || handoff)) this.#policy.want();
    else this.#policy.quiet(isTold ? ms : Math.min(ms, SHORTEST_TURN), now);
  }

  /**
   * What the call wants is held by another: no try for `ms` unless something changes, except by waiters in `mustRetry`.
   * `others`: it is free, and so many outside this process go first.
   */
  refused(call: Acquisition<unknown>, ms: number, mustRetry: readonly string[] = [], others = 0): void {
    // Not in line yet, it tries again as soon as it is.
    if (call.list !== this.#waiters) return;
    this.#permits?.settle(call);
    this.#successor = undefined;
    if (this.first === call) this.#policy.quiet(ms, this.#now);
    if (call.traits.serverQueued) listenAlone(call, this.#options.end);
    else this.#unsubscribe ??= this.#listen(call);
    for (const waiter of mustRetry.length > 0 ? this.#waiters.all() : []) {
      if (waiter.ticket !== undefined && mustRetry.includes(waiter.ticket)) waiter.hint();
    }
    if (others > 0) this.#backOff(others);
  }

  /** Something may have changed: the first one tries again. */
  hint(): void {
    this.#policy.changed(this.first?.backoff ?? 0, this.#now);
    this.first?.resume();
  }

  /**
   * What they wait for is given back in this process. `pass` is told of the first one, and what becomes of it; if it
   * returns true, that one's next try awaits the command by which it may be granted.
   */
  handOver(pass: (call: Acquisition<unknown>, handoff: Handoff) => boolean): void {
    const { first } = this;
    if (!first) return;
    const handoff = this.#policy.giveBack(this.#listening, this.#now);
    if (pass(first, handoff)) {
      this.#successor = first;
      first.hint();
    } else if (handoff !== "passLocal") {
      // Whoever is not granted by the same command must not try right behind it either.
      this.#backOff(1);
    }
  }

  /** It was given back, and nobody here has it yet. */
  released(): void {
    // The next waiter need not wait for the message.
    if (!this.#policy.backsOff && !(this.#listening && this.first)) this.hint();
  }

  get #now(): number {
    return this.#options.clock.mono();
  }

  #backOff(others: number): void {
    this.#policy.backOff(others, this.#now);
    this.first?.resume();
  }

  /** Listens on the common channel, on behalf of all waiters. */
  #listen(call: Acquisition<unknown>): () => void {
    const hint = () => {
      // By the confirmation none of those ahead has had its turn, and a try is due after theirs.
      const isNews = this.#listening || !this.#policy.backsOff;
      this.#listening = true;
      if (!isNews) return;
      this.#policy.message(this.first?.backoff ?? 0, this.#now);
      this.first?.resume();
    };
    return listen(call, hint, () => this.#waiters.all(), this.#options.end);
  }

  /** The last one has the lock now. Where it has gone from hand to hand, others are likely to be back soon. */
  #keep(call: Acquisition<unknown>): void {
    // Where the server is to know who waits, whoever comes next has to tell it at once.
    if (this.#policy.active && !call.traits.advertised) this.#options.kept.start(this);
    else this.#stop();
  }

  #stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#listening = false;
    this.#policy = new HandoffPolicy(this.#advertised);
  }
}
