/**
 * One call that may have to wait, for a lock or for permits: its limits, its promise, its place in line.
 *
 *                | trying            | queued     | asleep       | aside             | over
 *  --------------|-------------------|------------|--------------|-------------------|---------------------------
 *  granted       | over              | -          | -            | -                 | what it got is given back
 *  refused       | asleep, or queued | -          | -            | -                 | -
 *                | behind others; or |            |              |                   |
 *                | over (wait 0)     |            |              |                   |
 *  no answer     | asleep if it had  | -          | -            | -                 | -
 *                | waited, or over   |            |              |                   |
 *  becomes first | -                 | asleep     | -            | -                 | -
 *  woken         | tries once more   | -          | trying       | trying            | -
 *  time is up,   | over, and what it | over       | over         | over              | -
 *  abort, close  | may get is ended  |            |              |                   |
 *
 * trying: a command of its own, or a release that may grant it the lock, is on its way. queued: behind other calls of this
 * process. asleep: first in line, until a message or the end of the holder's lease. aside: out of the line, until its owner
 * has a turn or an answer for it.
 */
import { onAbort } from "../base/abort-hub.js";
import { instant } from "../base/clock.js";
import { ClientClosedError, failure, isLockError } from "../base/errors.js";
import { reasonOf } from "../base/events.js";
import { quietly } from "../base/work.js";
import type { Env } from "../env.js";
import type { Asked } from "../lock/options.js";
import type { Listener } from "../pubsub/router.js";
import { Command, type PlainCommand } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import type { Place, Site } from "./site.js";
import type { Limits, Wanted } from "./wanted.js";

export type WaitState = "trying" | "queued" | "asleep" | "aside" | "over";

/** The reason of a call whose `wait` is over. */
const TIME_IS_UP: unique symbol = Symbol("time is up");

/** Milliseconds for which a try may be on its way when the call's time is up, and the answer before it still counts. */
const FRESH = 250;

/** `G`: what it is granted; `R`: what it resolves with. */
export abstract class Waiter<W extends Wanted = Wanted, G = unknown, R = unknown> extends Command {
  readonly wanted: W;
  readonly env: Env;
  /** Of a call for a lock or a group: all of that; permits have no owner. */
  readonly asked: Limits & Partial<Asked>;
  readonly wait: number;
  state: WaitState = "aside";
  /** Redis has answered this call, or it stands behind others: from then on an outage does not end it. */
  hasWaited = false;
  /** Its last try got no answer. */
  unanswered = false;
  /** When the server was last told that it waits, in monotonic milliseconds. */
  toldAt: number = Number.NEGATIVE_INFINITY;
  /** When the `waiting` event was sent, in monotonic milliseconds. */
  waitsSince: number | undefined;
  /** Its place in line. */
  place: Place | undefined;
  site: Site | undefined;
  /** The server may have, or may yet get, something of its tries. */
  private isUnsure = false;
  /** The clients know it. */
  private isKnown = false;
  /** Undefined if nobody awaits the outcome. */
  private resolve: ((outcome: unknown) => void) | undefined;
  private cancelWait: (() => void) | undefined;
  private ignoreSignal: (() => void) | undefined;
  private cancelLater: (() => void) | undefined;

  constructor(wanted: W, asked: Limits & Partial<Asked>) {
    super(wanted.env.runner, wanted.lockName);
    this.wanted = wanted;
    this.env = wanted.env;
    this.asked = asked;
    this.wait = asked.wait;
  }

  /** The id under which events tell of it. */
  get toldId(): string | undefined {
    return undefined;
  }

  /** Listens for what wakes it. */
  listen(listener: Listener): () => void {
    return this.env.router.subscribe(this.wanted.channel, listener);
  }

  /** How much of a number it wants. */
  get permits(): number {
    return 1;
  }

  /** Its wire id, under which the server is told that it waits; undefined where that need not be known. */
  advertise(): string | undefined {
    return undefined;
  }

  /** Looks what is to be done now: a try, a place in line, or nothing until its owner resumes it. */
  abstract step(): void;

  abstract tryNow(): void;

  /** How events name it; permits have no owner. */
  private get told(): { readonly ownerId?: string } {
    return this.toldId === undefined ? {} : { ownerId: this.toldId };
  }

  /** Tells that it ends without a grant: by an abort, a close, or the time, if `error`, with which it rejects, is undefined. */
  protected tellEnd(error: unknown): void {
    if (error === undefined && this.wait === 0) return this.wanted.emit("rejected", this.told);
    const reason = error === undefined ? "timeout" : reasonOf(error, this.asked.signal);
    if (reason) this.wanted.emit("gaveUp", { ...this.told, reason, waited: this.waited });
  }

  /** Milliseconds until it tries again as the first in line, if it hears nothing. */
  get longestSleep(): number {
    return this.env.settings.pollCap;
  }

  /** Milliseconds since it was called. */
  protected get waited(): number {
    return this.env.clock.mono() - this.asked.begun;
  }

  /** Gives back, in the background, what its tries were or may be granted; undefined if tries take nothing. */
  protected abstract undo(): Promise<unknown> | undefined;

  /** Undoes its tries, if the server may have, or may yet get, something of them. */
  protected withdraw(): Promise<unknown> | undefined {
    if (!this.isUnsure) return undefined;
    this.isUnsure = false;
    return this.undo();
  }

  override unsure(): void {
    this.isUnsure = true;
  }

  protected override failed(error: unknown): void {
    this.unsure();
    this.fail(error);
  }

  /** It is over; `taken`: with a grant. */
  protected ended(_taken: boolean): void {
    // Most calls are known by nobody else.
  }

  /** Tells of the grant, and says what it resolves with; undefined: it is refused and does not wait, or its time is up. */
  protected abstract outcome(granted: G | undefined): R | PromiseLike<R>;

  /** Resolves with its {@link outcome}. */
  start(): Promise<R> {
    return new Promise((resolve) => {
      this.resolve = resolve as (outcome: unknown) => void;
      const { wait, signal } = this.asked;
      if (wait > 0 && wait !== Number.POSITIVE_INFINITY) {
        this.cancelWait = this.env.clock.after(wait, () => this.end(TIME_IS_UP));
      }
      if (signal) this.ignoreSignal = onAbort(signal, () => this.end(signal.reason));
      this.step();
    });
  }

  get isAside(): boolean {
    return this.state === "aside";
  }

  /** It waits in line. */
  get isInLine(): boolean {
    return this.state === "queued" || this.state === "asleep";
  }

  /** A try begins: it sees all that was announced before. */
  protected tries(): void {
    this.state = "trying";
    this.sentAt = instant(this.env.clock);
    this.toldAt = this.sentAt.mono;
    this.site?.tries(this);
  }

  /** Whether a reply to a try is a grant; for those whose tries replicas acknowledge. */
  protected isGrant(_reply: unknown): boolean {
    return false;
  }

  /** What is sent as a try. */
  protected try(call: ScriptCall): ScriptCall | PlainCommand {
    const { replicas } = this.env;
    if (!replicas) return call;
    const { sentAt } = this;
    const isGrant = (reply: unknown) => this.isGrant(reply);
    return replicas.command(this.lockName, call, isGrant, () => this.isOpen && this.sentAt === sentAt);
  }

  /** Sends a try, unless too much is left to be done for earlier ones. */
  protected sendTry(): void {
    const full = this.env.runner.cleanUp.refusal(this.lockName);
    if (full) return this.fail(full);
    this.tries();
    const { commandTimeout } = this.env.runner;
    const within = this.wait === 0 || this.hasWaited ? commandTimeout : Math.min(commandTimeout, this.wait);
    this.begin(within + (this.env.replicas?.patience ?? 0), this.sentAt);
  }

  /** Nothing of it is on its way. */
  protected rest(): void {
    this.state = this.place ? "asleep" : "aside";
  }

  /** It is granted what it wants. It is over before anybody is told of the grant: a listener cannot end it any more. */
  protected grant(value: G): void {
    this.finish(true);
    this.settle(this.outcome(value));
  }

  /** Somebody else has it; `ttl`: ms until the holder's lease ends, -1 if it has no end. */
  protected refuse(ttl: number): void {
    this.unanswered = false;
    if (this.wait === 0) {
      this.finish(false);
      this.tellEnd(undefined);
      return this.settle(this.outcome(undefined));
    }
    this.announce();
    if (this.state !== "over") this.env.sites.of(this).refused(this, this.env.sites.untilNextTry(ttl));
  }

  /** Its try got no answer, or an error. */
  protected fail(error: unknown): void {
    this.unanswered = isLockError(error, "UNAVAILABLE");
    if (isLockError(error, "REPLICAS")) return void this.giveBackGrant(error);
    if (!this.hasWaited || this.wait === 0 || !this.unanswered) return this.end(error);
    this.env.sites.of(this).refused(this, this.env.settings.pollCap);
  }

  /** Stands aside until its owner calls {@link step}. */
  protected standAside(): void {
    this.site?.leave(this, false);
    this.state = "aside";
    this.announce();
  }

  /** Ends it: it rejects with the reason. Only the first end counts. */
  end(reason: unknown): void {
    if (this.state === "over") return;
    const isRefused = reason === TIME_IS_UP && this.isRefused;
    this.finish(false);
    const error = reason === TIME_IS_UP ? this.unavailable() : reason;
    this.tellEnd(isRefused ? undefined : error);
    if (isRefused) this.settle(this.outcome(undefined));
    else if (this.resolve) this.settle(failure(error));
  }

  override close(): void {
    this.end(new ClientClosedError(this.lockName));
  }

  /** It waits from now on, and tells that once. A listener may end it at once. */
  announce(): void {
    this.hasWaited = true;
    if (this.waitsSince !== undefined) return;
    this.waitsSince = this.env.clock.mono();
    this.known();
    for (const { presence } of this.wanted.envs) presence.begin();
    this.wanted.emit("waiting", this.told);
  }

  /** It may stand without a command from now on: the close of any client ends it. */
  protected known(): void {
    this.isKnown = true;
    for (const { sites } of this.wanted.envs) sites.calls.add(this);
  }

  /** Calls back in `ms` milliseconds, unless it is over by then; one callback at a time. */
  protected later(ms: number, callback: () => void): void {
    this.cancelLater?.();
    this.cancelLater = this.env.clock.after(ms, callback);
  }

  /** Whether there is a connection to those whose answers count. */
  protected get isReached(): boolean {
    return this.env.runner.servers.connected;
  }

  /** Whether it is known that others have what it wants: its last try, or that of the first in line, had an answer. */
  get isRefused(): boolean {
    if (!this.hasWaited || !this.isReached) return false;
    const asked = this.state === "queued" ? (this.site?.first ?? this) : this;
    if (asked.unanswered) return false;
    return asked.state !== "trying" || this.env.clock.mono() - asked.sentAt.mono < FRESH;
  }

  /** A grant that too few replicas have is given back before the call rejects. */
  private async giveBackGrant(error: unknown): Promise<void> {
    this.unsure();
    await quietly(this.env.runner.withTimeout(this.lockName, this.withdraw() ?? Promise.resolve()));
    this.end(error);
  }

  private settle(outcome: unknown): void {
    const resolve = this.resolve;
    // What it resolves with may be garbage before this call is: a group's hold knows the call.
    this.resolve = undefined;
    resolve?.(outcome);
  }

  private finish(taken: boolean): void {
    this.state = "over";
    if (this.isKnown) for (const { sites } of this.wanted.envs) sites.calls.remove(this);
    if (this.stop() && !taken) this.unsure();
    this.cancelWait?.();
    this.ignoreSignal?.();
    this.cancelLater?.();
    this.site?.leave(this, taken);
    // The next in line has tried by now, so that the server knows a waiting writer at all times.
    if (!taken) void this.withdraw();
    this.ended(taken);
  }
}
