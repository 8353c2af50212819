/**
 * The calls of one client that want the same, first come first served. Only the first waiter talks to Redis, so that ten
 * thousand waiters cost one try for each release. Where the server keeps a queue, each waiter tries once to get a ticket.
 */
import type { Clock } from "../base/clock.js";
import { List } from "../base/list.js";
import type { SharedTimeout, Timed } from "../base/shared-timeout.js";
import type { Acquisition } from "./acquisition.js";
import { type Handoff, HandoffPolicy, SHORTEST_TURN } from "./handoff-policy.js";
import { type EndCall, listen, listenAlone } from "./listening.js";
import { PromisedPermits } from "./promised-permits.js";
import { Tickets } from "./tickets.js";

export interface WaitQueueOptions {
  readonly name: string;
  readonly clock: Clock;
  /** Milliseconds after which the next try of the first waiter refreshes all tickets. */
  readonly refreshEvery: number;
  /** Keeps the queue for a while after it has become empty. */
  readonly kept: SharedTimeout<WaitQueue>;
  /** Called when the queue is no longer kept. */
  readonly idle: (queue: WaitQueue) => void;
  readonly end: EndCall;
}

export class WaitQueue implements Timed {
  /** Links of the list of kept queues. */
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  endsAt = 0;
  readonly name: string;
  /** Calls that belong to this queue, whether they stand in line or not. */
  calls = 0;
  /** Called when the last waiter leaves without a grant: the server may not know of it, and then announces nothing. */
  whenLeft: (() => void) | undefined;
  readonly #options: WaitQueueOptions;
  readonly #advertised: boolean;
  /** Calls that are not in line: they have not entered yet, wait for a turn of their owner, or re-enter. */
  readonly #unqueued = new List<Acquisition<unknown>>();
  /** Calls in line, in order of arrival. */
  readonly #waiters = new List<Acquisition<unknown>>();
  #policy: HandoffPolicy;
  readonly #tickets: Tickets;
  #unsubscribe: (() => void) | undefined;
  /** The server has confirmed the common subscription, so each later release sends a message. */
  #listening = false;
  /** Made when a grant leaves permits over. */
  #permits: PromisedPermits | undefined;
  /** The waiter that the release of the present holder may grant, while that release is under way. */
  #successor: Acquisition<unknown> | undefined;

  constructor(options: WaitQueueOptions, advertised: boolean) {
    this.name = options.name;
    this.#options = options;
    this.#advertised = advertised;
    this.#policy = new HandoffPolicy(advertised);
    this.#tickets = new Tickets(options.refreshEvery, options.clock.mono());
  }

  get first(): Acquisition<unknown> | undefined {
    return this.#waiters.first;
  }

  /** All calls of this queue, the waiters in line first. */
  all(): Acquisition<unknown>[] {
    return [...this.#waiters.all(), ...this.#unqueued.all()];
  }

  /** The call belongs to this queue from now on. */
  add(call: Acquisition<unknown>): void {
    call.queued = true;
    this.calls++;
    this.#unqueued.add(call);
  }

  /** The call is in line from now on. `trying`: its try is already on its way. */
  enter(call: Acquisition<unknown>, trying = false): void {
    if (!this.#unqueued.remove(call)) return;
    this.#waiters.add(call);
    this.#options.kept.running.remove(this);
    if (trying) this.trying(call);
    else if (call.traits.serverQueued) call.hinted = true;
  }

  /** The call is no longer in line. `undecided`: a try of this call is on its way. */
  leave(call: Acquisition<unknown>, undecided: boolean): void {
    const wasFirst = this.first === call;
    this.#permits?.settle(call);
    if (this.#waiters.remove(call)) this.#unqueued.add(call);
    call.unsubscribe?.();
    call.unsubscribe = undefined;
    // The call was woken, but has not tried: another waiter tries instead.
    if (call.hinted && !call.traits.serverQueued) this.hint();
    if (!wasFirst) return;
    const { first } = this;
    const isUnknown = first?.traits.advertised && !call.granted;
    // Permits that were too few for this call may be enough for the next waiter.
    const isEnough = first && first.permits < call.permits;
    // The next waiter does not back off: the server must record it before it forgets this one.
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

  /** The queue stayed empty for as long as it is kept. */
  expire(): void {
    this.#stop();
    this.#options.idle(this);
  }

  /** Milliseconds until a try of this call is due: 0 if it is due now, Infinity if the call must be woken first. */
  due(call: Acquisition<unknown>): number {
    if (call.hinted) return 0;
    return this.first === call ? this.#policy.due(this.#now) : Number.POSITIVE_INFINITY;
  }

  /** A try of this call begins; it sees everything that happened before. Returns the tickets that the try refreshes. */
  trying(call: Acquisition<unknown>): readonly string[] {
    call.hinted = false;
    if (this.first !== call) return [];
    this.#policy.trying();
    return call.traits.serverQueued ? this.#tickets.refreshed(call, this.#waiters, this.#now) : [];
  }

  /** The outcome of a try does not count: another one is due at once. */
  again(call: Acquisition<unknown>): void {
    if (this.#successor === call) this.#successor = undefined;
    if (this.first === call || !call.traits.serverQueued) this.hint();
    else call.hinted = true;
  }

  /** A call was granted what it wants: no try is due for `ms` unless something changes. `remaining` permits are left. */
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
    // An advertised waiter does not rely on messages: the server must record it soon.
    const isTold = (this.#listening && !advertised) || serverQueued;
    // The next waiter tries at once if it can be granted as well, or if neither a message nor a hand-over will come.
    if (shared || !(isTold || handoff)) this.#policy.want();
    else this.#policy.quiet(isTold ? ms : Math.min(ms, SHORTEST_TURN), now);
  }

  /** The call was refused: no try is due for `ms` unless something changes. `others`: so many processes go first. */
  refused(call: Acquisition<unknown>, ms: number, others = 0): void {
    // A call that is not in line tries again when it enters.
    if (call.list !== this.#waiters) return;
    this.#permits?.settle(call);
    this.#successor = undefined;
    if (this.first === call) this.#policy.quiet(ms, this.#now);
    if (call.traits.serverQueued) listenAlone(call, this.#options.end);
    else this.#unsubscribe ??= this.#listen(call);
    if (others > 0) this.#backOff(others);
  }

  /** The waiters with these tickets try now. */
  retry(tickets: readonly string[]): void {
    for (const waiter of this.#waiters.all()) {
      if (waiter.ticket !== undefined && tickets.includes(waiter.ticket)) waiter.hint();
    }
  }

  /** Something may have changed: the first waiter tries again. */
  hint(): void {
    this.#policy.changed(this.first?.backoff ?? 0, this.#now);
    this.first?.resume();
  }

  /**
   * A holder of this process gives the lock back. `pass` gets the first waiter and the policy's decision. If `pass`
   * returns true, the release may grant that waiter, and the waiter's next try awaits the answer to the release.
   */
  handOver(pass: (call: Acquisition<unknown>, handoff: Handoff) => boolean): void {
    const { first } = this;
    if (!first) return;
    const handoff = this.#policy.giveBack(this.#listening, this.#now);
    if (pass(first, handoff)) {
      this.#successor = first;
      first.hint();
    } else if (handoff !== "passLocal") {
      // The release does not grant the waiter, so the waiter must not try right behind it either.
      this.#backOff(1);
    }
  }

  /** The lock was given back, or was `lost` before. `told`: the first waiter knows how that has ended for it. */
  released(lost = false, told = false): void {
    if (lost) this.#policy.unannounced();
    // No message will wake the next waiter, so it is woken here.
    if (!told && !this.#policy.backsOff && !(this.#listening && this.first)) this.hint();
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
      // The first hint is the server's confirmation: it ends no turn of a process ahead, and a try is due after these.
      const isNews = this.#listening || !this.#policy.backsOff;
      this.#listening = true;
      if (!isNews) return;
      this.#policy.message(this.first?.backoff ?? 0, this.#now);
      this.first?.resume();
    };
    return listen(call, hint, () => this.#waiters.all(), this.#options.end);
  }

  /** The last waiter has the lock now. If calls of this process share it, others are likely to be back soon. */
  #keep(call: Acquisition<unknown>): void {
    // The next call of an advertised queue must tell the server at once, so such a queue is not kept.
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
