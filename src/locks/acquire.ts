/** One call that wants a hold of a lock: how it tries, and what becomes of a try that nobody waits for any more. */
import { type Instant, instant } from "../base/clock.js";
import { isLockError, LockLostError } from "../base/errors.js";
import { trace } from "../base/trace.js";
import {
  Acquisition,
  type Attempt,
  type CoWaiters,
  type Listener,
  type QueueTraits,
} from "../engine/acquisition.js";
import type { Frame } from "../owners/context.js";
import type { LockAcquisitionOptions } from "./acquisition-options.js";
import { type Acquired, type Backend, eventOf } from "./backend.js";
import {
  awhile,
  changed,
  dropTurns,
  endRun,
  endWireId,
  inOrder,
  inOrderWithin,
  turnsOf,
} from "./commands.js";
import { addHold, closeCall, openCall, pushOpen } from "./holds.js";
import { dropExpired, holds, wireIdOf } from "./loss.js";
import { Grant, type OpenCall, type OwnerLock } from "./owner-lock.js";
import { AGAIN, reenter } from "./reenter.js";
import { release } from "./release.js";
import { scheduleRenewal } from "./renewal.js";
import { type LocalSuccessor, successorOf } from "./successor.js";
import { admitsUpgrade } from "./upgrade.js";
import { quietly } from "./work.js";

export class LockAcquisition extends Acquisition<Grant> implements OpenCall {
  nextOfOwner: OpenCall | undefined;
  prevOfOwner: OpenCall | undefined;
  awaitsTurn = false;
  readonly own: OwnerLock;
  readonly backend: Backend;
  readonly isBare: boolean;
  readonly isMember: boolean;
  readonly lease: number;
  /** Whether the watchdog renews what it is granted. */
  readonly renewed: boolean;
  readonly frame: Frame | undefined;
  readonly caller: Frame | undefined;
  /** From when its lease counts; if absent from when its command is sent. */
  since: Instant | undefined;
  /** Of the wire id of its outermost tries; minted at the first. */
  number: number | undefined;
  /** The server may have something of its tries, or may yet get it: a grant that nobody heard of, a ticket. */
  outcomeUnknown = false;
  /** The command of its try was sent and not answered. */
  inFlight = false;
  /** Its last try, and what had to be settled after it. */
  lastTry: Promise<unknown> | undefined;
  grant: Grant | undefined;
  /** Its next try is the command by which another gives the lock back. */
  successor: LocalSuccessor | undefined;

  constructor({ own, backend, origin, lease, frame, caller }: LockAcquisitionOptions) {
    super();
    this.own = own;
    this.backend = backend;
    this.isBare = origin === "bare";
    this.isMember = origin === "member";
    this.lease = lease ?? own.table.env.settings.watchdogTimeout;
    this.renewed = lease === undefined;
    this.frame = frame;
    this.caller = caller;
  }

  override get lockName(): string {
    return this.backend.lockName;
  }

  override get queueName(): string {
    return this.backend.queueName;
  }

  override get traits(): QueueTraits {
    return this.backend.traits;
  }

  override get away(): boolean {
    return this.own.table.env.runner.servers.isAway(this.backend.key);
  }

  override get ticket(): string | undefined {
    return this.outcomeUnknown ? this.wireId : undefined;
  }

  get wireId(): string | undefined {
    return this.number === undefined ? undefined : this.own.table.env.wireId(this.number);
  }

  override begun(): void {
    openCall(this.own, this);
  }

  override admitted(): boolean {
    const hasTurn = this.hasTurn();
    if (!hasTurn) turnsOf(this.own).await(this);
    else if (this.awaitsTurn) this.own.turns?.settle(this);
    return hasTurn;
  }

  hasTurn(): boolean {
    const { own, frame, backend } = this;
    if (!admitsUpgrade(this)) return false;
    return !frame || !own.turns || own.turns.admits(frame, backend.accessMode);
  }

  override reenters(): boolean {
    return holds(this.own);
  }

  override whenAnswered(callback: () => void): () => void {
    return this.own.table.env.runner.servers.healthOf(this.backend.key).onAnswer(callback);
  }

  override listen(listener: Listener): () => void {
    return this.own.table.env.router.subscribe(this.backend.wakesOn(this.wireId ?? ""), listener);
  }

  override waiting(): void {
    const { env } = this.own.table;
    this.number ??= env.mint();
    const ownerId = wireIdOf(this.own) ?? env.wireId(this.number);
    trace('lock "%s": %s waits', this.lockName, ownerId);
    if (env.events.heard("waiting")) env.events.emit("waiting", { ...eventOf(this.backend), ownerId });
  }

  /** What a try leaves behind when it fails or is given up is settled before the owner's next command. */
  override attempt(within: number, coWaiters: CoWaiters): Promise<Attempt<Grant>> {
    const { own } = this;
    dropExpired(own);
    if (!own.lastCommand && !own.firstHold) {
      this.lastTry = inOrder(own, () => this.#outermost(within, coWaiters));
      return this.lastTry as Promise<Attempt<Grant>>;
    }
    const { answer, settled } = inOrderWithin<Attempt<Grant>>(own, this.lockName, within, async (reply) => {
      dropExpired(own);
      if (this.over || !this.hasTurn()) return reply.resolve(AGAIN);
      // Also a hold on its way back is re-entered: its unlock was called later than this call.
      if (own.firstHold) await reenter(this, reply);
      else reply.resolve(await this.#outermost(reply.left, coWaiters));
    });
    this.lastTry = settled;
    return answer;
  }

  override succeed(_lockKey: string, own: number | undefined): LocalSuccessor | undefined {
    if (this.over || this.inFlight || this.successor) return undefined;
    dropExpired(this.own);
    if (this.own.lastCommand || this.own.firstHold || !this.hasTurn()) return undefined;
    this.successor = successorOf(this, own);
    // From now on the server may have a hold for it, whether it comes to the try or not.
    this.outcomeUnknown = true;
    return this.successor;
  }

  override withdraw(): void {
    if (this.outcomeUnknown && !this.inFlight) void this.undo();
  }

  override ended(taken: boolean): void {
    const { own, lastTry, grant, frame } = this;
    closeCall(own, this);
    own.turns?.settle(this);
    if (!taken) {
      if (lastTry) own.table.env.settle(lastTry);
      // Granted after all, while the call was being ended.
      if (grant) void quietly(release(grant));
      else this.withdraw();
      endRun(own, frame);
    }
    own.turns?.resume();
    dropTurns(own);
  }

  /** Registers a hold everywhere before the call that wanted it resolves. `number`: of its wire id. */
  accept(number: number, sent: Instant, token: bigint | undefined): Grant | undefined {
    const { own, backend, lease, renewed, frame } = this;
    const grant = new Grant({ own, backend, number, frame, sent, lease, renewed, token });
    if (this.over || grant.remaining <= 0) return undefined;
    trace('lock "%s": granted to %s', this.lockName, grant.wireId);
    this.grant = grant;
    // A nested call needs nothing of its outermost tries any more.
    if (number !== this.number) this.withdraw();
    if (frame) turnsOf(own).begin(frame, backend.accessMode);
    own.turns?.settle(this);
    addHold(own, grant, this.outcomeUnknown);
    this.outcomeUnknown = false;
    if (this.isBare) pushOpen(own, grant);
    if (renewed) scheduleRenewal(own, sent);
    changed(own);
    return grant;
  }

  async #outermost(within: number, coWaiters: CoWaiters): Promise<Attempt<Grant>> {
    const { backend, lease, lockName } = this;
    const { env } = this.own.table;
    const { runner, clock } = env;
    const ms = runner.prepared ? within : await runner.prepare(lockName, within);
    if (this.over) return AGAIN;
    const { successor, outcomeUnknown: again, number = env.mint() } = this;
    if (!successor) runner.backlog.assertRoom(lockName);
    this.number = number;
    const { connectionEpoch } = runner;
    const [wireId, sent] = [env.wireId(number), this.since ?? successor?.sent ?? instant(clock)];
    this.successor = undefined;
    this.inFlight = true;
    let reply: Acquired;
    try {
      reply = await (successor?.acquired ?? backend.acquire({ wireId, lease, within: ms, coWaiters, again }));
    } catch (error) {
      this.inFlight = false;
      this.outcomeUnknown = true;
      if (isLockError(error, "REPLICAS")) await awhile(this.own, this.undo());
      else if (this.over) void this.undo();
      throw error;
    }
    this.inFlight = false;
    // A command that lived through a lost connection may arrive once more.
    this.outcomeUnknown ||= runner.connectionEpoch !== connectionEpoch;
    if (!reply.granted) {
      this.outcomeUnknown ||= coWaiters !== undefined && (this.traits.serverQueued || this.traits.advertised);
      if (this.over) this.withdraw();
      return successor ? reply : { ...reply, ttl: reply.ttl || 1 };
    }
    const value = this.accept(number, sent, reply.token);
    if (value) return { granted: true, value, lease };
    this.granted = this.over;
    await awhile(this.own, this.undo());
    if (!this.over) throw new LockLostError(lockName, "expired", clock.wall());
    return AGAIN;
  }

  /** In the background: gives back what an outermost try got or may still get, one in flight by a command right behind it. */
  undo(): Promise<unknown> {
    const { wireId } = this;
    // A wire id that was undone has a tombstone; a further try needs a fresh one.
    this.number = undefined;
    this.successor = undefined;
    this.outcomeUnknown = false;
    return wireId ? endWireId(this.own, this.backend, wireId) : Promise.resolve();
  }
}
