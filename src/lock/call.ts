/**
 * One call for a hold, from the first line of `lock()` to the grant. The table of `waiting/waiter.ts` shows what any
 * call goes through. A call for a lock has these ways more.
 *
 *                       | trying                      | queued, asleep       | aside
 *  ---------------------|-----------------------------|----------------------|----------------------------
 *  its owner is granted | -                           | nests (trying: KEEP) | nests, if it has its turn
 *  elsewhere            |                             |                      |
 *  granted, though its  | ends its own id, and nests  | -                    | -
 *  owner has a grant    |                             |                      |
 *  granted too late     | ends its id; LOCK_LOST, or  | -                    | -
 *                       | tries with a fresh id if it |                      |
 *                       | had waited                  |                      |
 *  its id is over       | tries with a fresh id       | -                    | -
 *  refused by its own   | aside, until that id is     | -                    | -
 *  owner's id           | answered                    |                      |
 *  a release passes     | -                           | trying: that command | -
 *  sibling run has turn | aside                       | aside                | aside
 *  late grant           | tries again                 | tries                | nothing; over: ends the id
 *
 * An answer belongs to its own send, and to the wire id, not to the call. The call ends a late grant only if its id is
 * over.
 */
import type { Instant } from "../base/clock.js";
import { LockLostError, LockUpgradeError } from "../base/errors.js";
import { trace } from "../base/trace.js";
import { type Kind, type Released, TAKEN, type Taken } from "../kinds/kind.js";
import { encloses, type Frame, grantsAround } from "../owner/context.js";
import type { OwnCall } from "../owner/owner.js";
import type { PlainCommand } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import { Claim } from "./claim.js";
import { follow } from "./follow.js";
import type { Grant } from "./grant.js";
import { viewOf } from "./hold.js";
import type { HoldRecord } from "./hold-record.js";
import type { Asked } from "./options.js";

export class Call extends Claim implements OwnCall {
  /** The grant that it nests into. */
  #into: Grant | undefined;
  #term = 0;

  constructor(kind: Kind, asked: Asked) {
    super(kind, asked);
    asked.owner?.begin(this);
  }

  get frame(): Frame | undefined {
    return this.asked.frame;
  }

  override heldMeanwhile(): readonly Grant[] {
    return grantsAround(this.owner, this.asked.caller);
  }

  /** The id under which events tell of the call: its owner's grant, or its own. */
  override get toldId(): string {
    const ownId = super.toldId;
    return this.#ownGrant?.wireId ?? ownId;
  }

  /** Tells of its hold. From now on `lock.unlock()` finds one that is no run's. */
  protected override outcome(hold: HoldRecord<Grant> | undefined): unknown {
    if (!hold) return null;
    if (!this.frame) this.owner?.opened(hold);
    const { holds, wireId: ownerId } = hold.grant;
    const waited = this.env.clock.mono() - this.begun;
    this.wanted.emit("acquired", { ownerId, waited, nested: holds[0] !== hold });
    follow(this.wanted, hold);
    return viewOf(hold);
  }

  override step(): void {
    if (this.state === "over" || this.state === "trying") return;
    const grant = this.#ownGrant;
    try {
      if (!this.#mayGoOn(grant)) return this.#awaitTurn();
    } catch (error) {
      return this.end(error);
    }
    if (grant) return this.#nest(grant);
    this.env.sites.enter(this);
  }

  override tryNow(): void {
    if (this.owner && this.#ownGrant) return this.step();
    // The server forgets a waiting writer of this process while the process stands still.
    const { yieldsTo } = this.wanted;
    if (yieldsTo !== undefined) this.env.sites.get({ siteName: yieldsTo })?.remind();
    this.claim();
  }

  /** Becomes the successor of a release that is about to be sent. Gives the wire id to grant; undefined if it cannot be. */
  succeed(): string | undefined {
    if (!this.isInLine || (this.owner && this.#ownGrant)) return undefined;
    if (this.owner?.admits(this, this.lockKey) === false) return undefined;
    this.tries();
    // From now on the server may grant it, even if this call is over by then.
    this.unsure();
    return this.ownId;
  }

  /** Whether it still wants the lock under this wire id. */
  wants(wireId: string): boolean {
    return this.state !== "over" && this.wireId === wireId;
  }

  /** The release of which it was the successor has been answered; `late`: after {@link notSucceeded}. */
  succeeded({ isPassed, token }: Released, wireId: string, late: boolean, now: Instant): void {
    if (late || !this.#isSuccessor(wireId)) {
      if (isPassed) this.lateGrant(wireId);
      return;
    }
    if (isPassed) return this.#granted(token, now);
    this.rest();
    this.tryNow();
  }

  /** The release has no answer in time: whether the call has the lock is unknown. */
  notSucceeded(wireId: string): void {
    if (this.#isSuccessor(wireId)) this.fail(this.env.runner.unavailable(this.lockName));
  }

  #isSuccessor(wireId: string): boolean {
    return this.wants(wireId) && this.state === "trying" && !this.isOpen;
  }

  protected override request(): ScriptCall | PlainCommand {
    const into = this.#into;
    if (into) return this.wanted.keep(into.wireId, into, this.lease);
    return this.try(this.wanted.take(this.ownId, this));
  }

  /** An answer is for the wire id that was asked for. */
  protected override get tag(): string | undefined {
    return this.#into ? undefined : this.wireId;
  }

  protected override answered(reply: unknown, now: Instant): void {
    const into = this.#into;
    if (into) return this.#nested(into, Number((reply as unknown[])[0]), now);
    this.#answered(this.readTaken(reply), now);
  }

  protected override failed(error: unknown): void {
    const into = this.#into;
    if (into) {
      this.#into = undefined;
      into.uncount(this.wanted.side);
      this.fail(error);
    } else super.failed(error);
  }

  override unsure(): void {
    // A try to nest claims nothing.
    if (!this.#into) super.unsure();
  }

  protected override ended(taken: boolean): void {
    const { owner, frame } = this;
    const into = this.#into;
    this.#into = undefined;
    if (into && !taken) into.uncount(this.wanted.side);
    if (!taken && frame) owner?.endRun(this.lockKey, frame);
    owner?.over(this);
  }

  /** Whether it was refused by its own owner. */
  protected isOwn(holder: string): boolean {
    return this.owner?.isOwn(holder, this) === true;
  }

  get #ownGrant(): Grant | undefined {
    return this.owner?.grantOf(this.lockKey);
  }

  /**
   * Whether the call may try; false while it has to wait for runs of its owner.
   * @throws UPGRADE_REFUSED if it wants to write and would wait for a read hold that can only end after it. Such a hold
   * is a bare one, or that of a run that encloses the call.
   */
  #mayGoOn(grant: Grant | undefined): boolean {
    if (this.wanted.side === "write" && grant && grant.writes === 0) {
      const isBlocked = ({ frame }: HoldRecord) => !frame || encloses(frame, this.asked.caller);
      if (grant.holds.some(isBlocked)) throw new LockUpgradeError(this.lockName);
      return false;
    }
    return this.owner?.admits(this, this.lockKey) !== false;
  }

  #awaitTurn(): void {
    if (this.wait === 0) return this.refuse(0);
    void this.withdraw();
    this.standAside();
  }

  #answered(taken: Taken, now: Instant): void {
    if (taken.is !== "over" && taken.mustRetry?.length) {
      this.env.sites.of(this).retry(taken.mustRetry.flatMap((i) => this.coWaiters[i - 1] ?? []));
    }
    if (taken.is === "granted") {
      this.site?.turn.begin();
      return this.#granted(taken.token, now);
    }
    if (taken.is === "over") return this.#anew();
    this.rest();
    // A refusal by the owner's own id, on its way here or back, is none.
    if (this.isOwn(taken.holder)) return this.#ownGrant ? this.step() : this.#awaitOwn();
    this.refuse(taken.ttl);
  }

  /** The answer to another command of the owner, whose id has the lock, makes it try again. */
  #awaitOwn(): void {
    this.site?.leave(this, false);
    this.state = "aside";
    this.known();
    const { clock, runner } = this.env;
    this.stopLater(
      clock.after(runner.commandTimeout, () => {
        if (this.state === "aside") this.fail(runner.unavailable(this.lockName));
      }),
    );
  }

  #granted(token: bigint | undefined, now: Instant): void {
    const { owner, wanted: kind } = this;
    // Another call of the owner was granted first.
    if (owner && this.#ownGrant) {
      this.rest();
      this.unsure();
      void this.withdraw();
      return this.step();
    }
    const grant = this.granted(token);
    if (grant.left(now) <= 0) return this.#tooLate(now.wall + grant.left(now));
    grant.count(kind.side);
    this.#accept(grant, now);
  }

  /** The grant came after its deadline, in epoch milliseconds. */
  #tooLate(deadline: number): void {
    this.unsure();
    if (this.hasWaited && this.wait > 0) return this.#anew();
    this.end(new LockLostError(this.lockName, "expired", deadline));
  }

  /** Its wire id is over: it goes on under a fresh one. */
  #anew(): void {
    this.rest();
    this.forgetId();
    this.step();
  }

  #nest(grant: Grant): void {
    this.site?.leave(this, false);
    // Its own tries are not needed any more.
    void this.withdraw();
    this.tries();
    this.#into = grant;
    this.#term = grant.term;
    grant.count(this.wanted.side);
    // From now on siblings wait: nothing but the answer is between the run and its turn.
    this.owner?.beginRun(this, this.lockKey);
    this.begin(this.within, this.sentAt);
  }

  #nested(grant: Grant, found: number, now: Instant): void {
    this.#into = undefined;
    if (grant.isHeld && !grant.has(found)) grant.gone(found);
    grant.raise(this.sentAt, this.lease, this.#term);
    if (grant.isHeld) return this.#accept(grant, now);
    grant.uncount(this.wanted.side);
    this.rest();
    if (this.frame) this.owner?.endRun(this.lockKey, this.frame);
    this.step();
  }

  /** It has a hold, which is known everywhere before the call resolves. */
  #accept(grant: Grant, now: Instant): void {
    const { env, owner, wanted: kind } = this;
    const { lease, frame, place } = this.asked;
    const isRenewed = lease === undefined;
    const isNested = grant.holds.length > 0;
    const hold = grant.hold(kind.side, isRenewed, frame, now);
    if (place) hold.place = place;
    if (owner) {
      owner.beginRun(this, this.lockKey);
      if (isNested) owner.recheck(this.lockKey);
      else owner.granted(grant);
    }
    trace?.('lock "%s": granted to %s', this.lockName, grant.wireId);
    if (isRenewed) env.watchdog.renewAfter(grant, this.sentAt, now);
    if (!isNested) this.#begin(grant);
    env.watchdog.watch(grant);
    this.grant(hold);
  }

  /** Whoever else of this client has the lock to itself has lost it: otherwise the server had not granted it. */
  #begin(grant: Grant): void {
    const { env, lockKey } = this;
    const other = env.live.get(lockKey);
    if (other === grant) return;
    if (other?.isHeld && grant.writes + other.writes > 0) other.gone(TAKEN);
    env.live.add(grant, grant.writes > 0 ? lockKey : grant);
  }
}
