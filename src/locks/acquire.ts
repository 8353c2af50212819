/** One call for a hold of a lock: how it tries, and how a try is undone once the call is over. */
import { type Instant, instant } from "../base/clock.js";
import { isLockError, LockLostError } from "../base/errors.js";
import { quietly } from "../base/work.js";
import {
  Acquisition,
  type Attempt,
  type CoWaiters,
  type Listener,
  type QueueTraits,
} from "../engine/acquisition.js";
import type { Frame } from "../owners/context.js";
import type { LockAcquisitionOptions } from "./acquisition-options.js";
import type { Acquired, Backend } from "./backend.js";
import { awhile, callEnded, endRun, inOrder, inOrderWithin, turnsOf } from "./commands.js";
import { addHold, openCall } from "./holds.js";
import { dropExpired, holds } from "./loss.js";
import { Grant, type OpenCall, type OwnerLock } from "./owner-lock.js";
import { AGAIN, reenter } from "./reenter.js";
import { release } from "./release.js";
import { register } from "./renewal.js";
import { type LocalSuccessor, successorOf } from "./successor.js";
import { tellWaiting } from "./telling.js";
import { undoSent, undoTry } from "./undo.js";
import { admitsUpgrade } from "./upgrade.js";

export class LockAcquisition extends Acquisition<Grant> implements OpenCall {
  readonly lockName: string;
  readonly queueName: string;
  readonly traits: QueueTraits;
  declare awaitsTurn?: boolean;
  readonly own: OwnerLock;
  readonly backend: Backend;
  readonly isBare: boolean;
  readonly isMember: boolean;
  readonly lease: number;
  readonly renewed: boolean;
  readonly frame: Frame | undefined;
  readonly caller: Frame | undefined;
  /** When its lease begins to count; absent: when its command is sent. */
  declare since: Instant | undefined;
  /** The number in the wire id of its outermost tries; minted at the first try. */
  number: number | undefined;
  /** The server may have, or may yet get, something of its tries: a grant whose reply was lost, a ticket. */
  outcomeUnknown = false;
  /** The command of its try was sent and not answered. */
  inFlight = false;
  /** Settles when its last try and the undoing of that try have settled. */
  lastTry: Promise<unknown> | undefined;
  grant: Grant | undefined;
  /** The call ended while its try was on the way: the command right behind the try that undoes it, until its answer. */
  declare behind: Promise<unknown> | undefined;
  /** Its next try travels in the command by which another call gives the lock back. */
  declare successor: LocalSuccessor | undefined;

  constructor({ own, backend, origin, lease, frame, caller }: LockAcquisitionOptions) {
    super();
    this.lockName = backend.lockName;
    this.queueName = backend.queueName;
    this.traits = backend.traits;
    this.own = own;
    this.backend = backend;
    this.isBare = origin === "bare";
    this.isMember = origin === "member";
    this.lease = lease ?? own.table.env.settings.watchdogTimeout;
    this.renewed = lease === undefined;
    this.frame = frame;
    this.caller = caller;
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
    // A record without an owner has one call at a time, and nothing looks it up.
    if (this.own.owner) openCall(this.own, this);
  }

  override admitted(): boolean {
    const hasTurn = this.hasTurn();
    if (!hasTurn) turnsOf(this.own).await(this);
    else if (this.awaitsTurn) this.own.turns?.settle(this);
    return hasTurn;
  }

  hasTurn(ordered = false): boolean {
    const { own, frame, backend } = this;
    if (backend.side === "write" && !admitsUpgrade(this, ordered)) return false;
    return own.turns?.admits(frame, backend.traits.shared) ?? true;
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
    this.number ??= this.own.table.env.mint();
    tellWaiting(this.own, this.backend, this.number);
  }

  /** Whatever a failed or abandoned try leaves on the server is settled before the owner's next command. */
  override attempt(within: number, coWaiters: CoWaiters): Promise<Attempt<Grant>> {
    const { own, successor } = this;
    if (successor || (!own.lastCommand && !own.firstHold)) {
      // Without an owner this is the record's only open call; a successor is in the order already.
      const outermost = () => this.#outermost(within, coWaiters);
      const tried = own.owner && !successor ? inOrder(own, outermost) : outermost();
      this.lastTry = tried;
      return tried;
    }
    dropExpired(own);
    const { answer, settled } = inOrderWithin<Attempt<Grant>>(own, this.lockName, within, (reply) => {
      if (reply.waited) dropExpired(own);
      // Expired holds are being released: until then the server counts more holds than a nested call expects.
      if (this.over || own.drops || !this.hasTurn(true)) return Promise.resolve(reply.resolve(AGAIN));
      // A hold that is being given back is re-entered too: its unlock was called after this call.
      if (own.firstHold) return reenter(this, reply);
      return this.#outermost(reply.left, coWaiters).then(reply.resolve);
    });
    this.lastTry = settled;
    return answer;
  }

  override succeed(_lockKey: string, own: number | undefined): LocalSuccessor | undefined {
    if (this.over || this.trying || this.inFlight || this.successor) return undefined;
    dropExpired(this.own);
    if (this.own.lastCommand || this.own.firstHold || !this.hasTurn()) return undefined;
    this.successor = successorOf(this, own);
    // From now on the server may grant it a hold, even if this call never makes that try.
    this.outcomeUnknown = true;
    return this.successor;
  }

  override withdraw(): void {
    if (this.outcomeUnknown && !this.inFlight) void this.undo();
  }

  override ended(taken: boolean): void {
    const { own, lastTry, grant, frame } = this;
    if (own.calls?.delete(this) && own.calls.size === 0) own.calls = undefined;
    own.turns?.settle(this);
    if (!taken) {
      if (lastTry) own.table.env.settle(lastTry);
      // The grant arrived while the call was ending.
      if (grant) void quietly(release(grant));
      else if (this.inFlight) undoSent(this);
      else this.withdraw();
      endRun(own, frame);
    }
    callEnded(own);
  }

  /** Registers a hold everywhere before its call resolves. `number`: in its wire id. */
  accept(number: number, sent: Instant, token: bigint | undefined): Grant | undefined {
    const { own, backend, lease, renewed, frame } = this;
    const now = instant(own.table.env.clock);
    const grant = new Grant({ own, backend, number, frame, sent, now, lease, renewed, token });
    if (this.over || grant.remainingAt(now) <= 0) return undefined;
    this.grant = grant;
    // The hold is nested, so the call's earlier outermost tries are not needed any more.
    if (number !== this.number) this.withdraw();
    own.turns?.settle(this);
    addHold(grant, this.outcomeUnknown, this.isBare);
    this.outcomeUnknown = false;
    register(grant, sent, now);
    return grant;
  }

  #outermost(within: number, coWaiters: CoWaiters): Promise<Attempt<Grant>> {
    const { backend, lease, lockName, successor, outcomeUnknown: again } = this;
    const { env } = this.own.table;
    if (!env.runner.prepared) {
      const prepared = env.runner.prepare(lockName, within);
      return prepared.then((left) => (this.over ? AGAIN : this.#outermost(left, coWaiters)));
    }
    const full = successor ? undefined : env.runner.backlog.refusal(lockName);
    if (full) return Promise.reject(full);
    const number = this.number ?? env.mint();
    this.number = number;
    const { connectionEpoch } = env.runner;
    const wireId = env.wireId(number);
    const sent = this.since ?? successor?.sent ?? instant(env.clock);
    if (successor) this.successor = undefined;
    this.inFlight = true;
    const acquired = successor?.acquired ?? backend.acquire({ wireId, lease, within, coWaiters, again });
    return acquired.then(
      (reply) => {
        this.inFlight = false;
        // The connection was lost meanwhile, so the server may run the command a second time.
        this.outcomeUnknown ||= env.runner.connectionEpoch !== connectionEpoch;
        if (!reply.granted) return this.#refused(reply, coWaiters, successor !== undefined);
        const value = this.accept(number, sent, reply.token);
        return value ? { granted: true, value, lease, mustRetry: reply.mustRetry } : this.#tooLate();
      },
      (error: unknown) => this.#failed(error),
    );
  }

  /** `handedOver`: the refusal came in the answer to another call's release. */
  #refused(reply: Acquired & { granted: false }, coWaiters: CoWaiters, handedOver: boolean): Attempt<Grant> {
    this.outcomeUnknown ||= coWaiters !== undefined && (this.traits.serverQueued || this.traits.advertised);
    if (this.over) this.withdraw();
    return handedOver ? reply : { ...reply, ttl: reply.ttl || 1 };
  }

  async #failed(error: unknown): Promise<never> {
    this.inFlight = false;
    this.outcomeUnknown = true;
    if (isLockError(error, "REPLICAS")) await awhile(this.own, this.undo());
    else if (this.over) void this.undo();
    throw error;
  }

  /** Granted, but past its deadline, or after the call was over. */
  async #tooLate(): Promise<Attempt<Grant>> {
    // The late call of a group asks whether there was a grant to take back.
    this.granted = this.over;
    await awhile(this.own, this.undo());
    if (!this.over) throw new LockLostError(this.lockName, "expired", this.own.table.env.clock.wall());
    return AGAIN;
  }

  /** In the background: gives back whatever an outermost try got or may still get. */
  undo(): Promise<unknown> {
    const undone = undoTry(this);
    // A wire id that was undone has a tombstone; a further try needs a fresh one.
    this.number = undefined;
    this.successor = undefined;
    this.outcomeUnknown = false;
    return undone;
  }
}
