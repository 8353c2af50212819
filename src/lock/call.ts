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
import type { Kind, Released, Try } from "../kinds/kind.js";
import { encloses } from "../owner/context.js";
import type { OwnCall, OwnerRecord } from "../owner/owner.js";
import type { Listener } from "../pubsub/router.js";
import type { PlainCommand } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import { Waiter } from "../waiting/waiter.js";
import { endInBackground } from "./end.js";
import { follow } from "./follow.js";
import { Grant } from "./grant.js";
import { viewOf } from "./hold.js";
import type { HoldRecord } from "./hold-record.js";
import type { Asked } from "./options.js";

const NOBODY: readonly string[] = [];

export class Call extends Waiter<Kind, HoldRecord<Grant>> implements OwnCall, Try {
  declare readonly asked: Asked;
  readonly owner: OwnerRecord | undefined;
  readonly lease: number;
  /** Waiters of this process whose tickets its try refreshes. */
  coWaiters: readonly string[] = NOBODY;
  #number = 0;
  /** The wire id of its first try: events tell of the call under that. */
  #first: string | undefined;
  /** What its wire id was granted. */
  #grant: Grant | undefined;
  /** The grant that it nests into, by a KEEP of its own, and the term of that one's deadline. */
  #into: Grant | undefined;
  #term = 0;

  constructor(kind: Kind, asked: Asked) {
    super(kind, asked);
    this.owner = asked.owner;
    this.lease = asked.lease ?? kind.env.settings.watchdogTimeout;
    this.owner?.begin(this);
  }

  get lockKey(): string {
    return this.wanted.lockKey;
  }

  /** Its wire id: minted at the first try, and anew once it is over. */
  get #ownId(): string {
    if (this.wireId === undefined) {
      this.#number = this.env.mint();
      this.wireId = this.env.wireId(this.#number);
      this.#first ??= this.wireId;
    }
    return this.wireId;
  }

  /** The id under which events tell of the call: its owner's grant, or its own. */
  override get toldId(): string {
    return this.#ownGrant?.wireId ?? this.#first ?? this.#ownId;
  }

  override listen(listener: Listener): () => void {
    return this.env.router.subscribe(this.wanted.wakesOn(this.#ownId), listener);
  }

  override advertise(): string | undefined {
    if (!this.wanted.traits.advertised) return undefined;
    this.unsure();
    this.toldAt = this.env.clock.mono();
    return this.#ownId;
  }

  /** Tells of its hold. From now on `lock.unlock()` finds one that is no run's. */
  protected override outcome(hold: HoldRecord<Grant> | undefined): unknown {
    if (!hold) return null;
    const { owner } = this;
    if (owner && !this.asked.frame) owner.opened(hold);
    const nested = hold.grant.holds[0] !== hold;
    this.wanted.emit("acquired", { waited: this.waited, nested }, hold.grant);
    follow(this.wanted, hold);
    return viewOf(hold);
  }

  override step(): void {
    if (this.state === "over" || this.state === "trying") return;
    // Of an owner that nobody else knows there are no other calls.
    if (!this.owner) return this.env.sites.enter(this);
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
    const { yieldsTo, serverQueued } = this.wanted.traits;
    if (yieldsTo) this.env.sites.get({ siteName: this.wanted.siteOf(yieldsTo) })?.remind();
    if (serverQueued) this.coWaiters = this.site?.behind(this) ?? NOBODY;
    this.sendTry();
  }

  /** Becomes the successor of a release that is about to be sent. Gives the wire id to grant; undefined if it cannot be. */
  succeed(): string | undefined {
    if (this.state === "trying" || this.state === "over" || (this.owner && this.#ownGrant)) return undefined;
    if (this.owner?.admits(this, this.lockKey) === false) return undefined;
    this.tries();
    // From now on the server may grant it, even if this call is over by then.
    this.unsure();
    return this.#ownId;
  }

  /** Whether it still wants the lock under this wire id. */
  wants(wireId: string): boolean {
    return this.state !== "over" && this.wireId === wireId;
  }

  /** The release of which it was the successor has been answered; `late`: after {@link notSucceeded}. */
  succeeded({ isPassed, token }: Released, wireId: string, late: boolean, now: Instant): void {
    if (late || !this.#isSuccessor(wireId)) {
      if (isPassed) this.#lateGrant(wireId);
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
    return this.#into?.keeper(this.lease) ?? this.try(this.wanted.take(this.#ownId, this));
  }

  protected override isGrant(reply: unknown): boolean {
    return this.wanted.readTaken(reply).is === "granted";
  }

  protected override answered(reply: unknown, now: Instant): void {
    if (this.#into) return this.#nested(this.#into, Number(reply), now);
    const taken = this.wanted.readTaken(reply);
    if (taken.is === "over") return this.#anew();
    if (taken.mustRetry?.length) {
      this.env.sites.of(this).retry(taken.mustRetry.flatMap((i) => this.coWaiters[i - 1] ?? []));
    }
    if (taken.is === "granted") {
      this.site?.turn.begin();
      return this.#granted(taken.token, now);
    }
    const { serverQueued, advertised } = this.wanted.traits;
    // The server knows the call from now on.
    if (this.wait > 0 && (serverQueued || advertised)) this.unsure();
    this.rest();
    // A refusal by the owner's own id, on its way here or back, is none.
    if (this.isOwn(taken.holder)) return this.#ownGrant ? this.step() : this.#awaitOwn();
    this.refuse(taken.ttl);
  }

  protected override failed(error: unknown): void {
    if (this.#into) this.#notNested(this.#into, error);
    else super.failed(error);
  }

  /** A late answer to a KEEP, which has no wire id, changes nothing. */
  protected override late(reply: unknown, wireId: string | undefined): void {
    if (wireId !== undefined && this.isGrant(reply)) this.#lateGrant(wireId);
  }

  /** The server has granted a wire id for which this call does not wait now. */
  #lateGrant(wireId: string): void {
    if (this.wants(wireId)) {
      if (this.isInLine) this.tryNow();
      else if (this.place) this.place.hinted = true;
      return;
    }
    // It is no news to a grant that lives, or whose END is on its way.
    if (this.#grant?.wireId === wireId && this.#grant.state !== "over") return;
    void endInBackground(this.wanted, wireId, this.owner);
  }

  /** Ends its wire id. */
  protected override undo(): Promise<void> | undefined {
    const { wireId } = this;
    if (wireId === undefined) return undefined;
    this.wireId = undefined;
    return endInBackground(this.wanted, wireId, this.owner);
  }

  protected override ended(taken: boolean): void {
    const { owner } = this;
    if (!taken) {
      this.#into?.uncount(this.wanted.traits.side);
      if (this.asked.frame) owner?.endRun(this.lockKey, this.asked.frame);
    }
    this.#into = undefined;
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
    if (this.wanted.traits.side === "write" && grant && grant.writes === 0) {
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

  /** The answer to another command of the owner, whose id has the lock, makes it try again. */
  #awaitOwn(): void {
    this.site?.leave(this, false);
    this.state = "aside";
    this.known();
    const { runner } = this.env;
    this.later(runner.commandTimeout, () => {
      if (this.state === "aside") this.fail(runner.unavailable(this.lockName));
    });
  }

  #granted(token: bigint | undefined, now: Instant): void {
    const { owner, wanted } = this;
    // Another call of the owner was granted first.
    if (owner && this.#ownGrant) {
      this.rest();
      this.unsure();
      void this.withdraw();
      return this.step();
    }
    const grant = new Grant(wanted, this.#number, owner, token);
    this.#grant = grant;
    grant.raise(this.sentAt, this.lease);
    if (grant.left(now) <= 0) return this.#tooLate(now.wall + grant.left(now));
    grant.count(wanted.traits.side);
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
    // The END of the old id may have named the new one already, as that of the next writer.
    if (!this.withdraw()) this.wireId = undefined;
    this.step();
  }

  #nest(grant: Grant): void {
    this.site?.leave(this, false);
    // Its own tries are not needed any more.
    void this.withdraw();
    this.wireId = undefined;
    this.#into = grant;
    this.#term = grant.term;
    grant.count(this.wanted.traits.side);
    // From now on siblings wait: nothing but the answer is between the run and its turn.
    this.owner?.beginRun(this, this.lockKey);
    this.tries();
    this.begin(undefined, this.sentAt);
  }

  /** KEEP has answered with what it `found`. */
  #nested(grant: Grant, found: number, now: Instant): void {
    if (!grant.kept(found, this.sentAt, now, this.lease, this.#term)) return this.#notNested(grant);
    this.#into = undefined;
    this.#accept(grant, now);
  }

  /** It goes on without the grant, which is over, or ends with the error. */
  #notNested(grant: Grant, error?: unknown): void {
    this.#into = undefined;
    grant.check();
    const isHeld = grant.state === "held";
    grant.uncount(this.wanted.traits.side);
    if (this.asked.frame) this.owner?.endRun(this.lockKey, this.asked.frame);
    // Its time for an answer is up, if that was the error, or it is refused for good.
    if (isHeld || error !== undefined) return this.fail(error);
    this.rest();
    this.step();
  }

  /** It has a hold, which is known everywhere before the call resolves. */
  #accept(grant: Grant, now: Instant): void {
    const { owner } = this;
    const isNested = grant.holds.length > 0;
    const hold = grant.hold(this.wanted.traits.side, this.asked, this.sentAt, now);
    if (owner) {
      owner.beginRun(this, this.lockKey);
      if (!isNested) owner.granted(grant);
    }
    this.grant(hold);
  }
}
