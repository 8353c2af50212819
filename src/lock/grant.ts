/**
 * All that one owner has of one lock, from its first hold to its last: the wire id, the deadline, the counts. Both sides of a
 * read-write lock are one grant.
 *
 *                        | held                                     | ending             | over
 *  ----------------------|------------------------------------------|--------------------|----------------------
 *  nested call begins    | its count is added; KEEP                 | - (a new grant)    | - (a new grant)
 *  nested call fails     | its count is taken off; the last: ending | -                  | -
 *  unlock, not the last  | its count is taken off; KEEP, or         | -                  | rejects LOCK_LOST once
 *                        | downgrade after the last write           |                    |
 *  unlock, the last      | ending; END, or PASS                     | -                  | rejects LOCK_LOST once
 *  KEEP: found           | the deadline is raised, never lowered    | nothing            | nothing
 *  KEEP: gone, taken     | over: lost; END                          | takes END's answer | nothing
 *  END: found            | -                                        | over: given back   | nothing
 *  END: gone, taken      | -                                        | over: lost, unless | nothing
 *                        |                                          | a tombstone's life |
 *                        |                                          | has passed         |
 *  deadline, force,      | over: lost; END                          | nothing            | nothing
 *  close                 |                                          |                    |
 *
 * Order and number of its commands do not matter: they only raise TTLs, and END leaves a tombstone for the wire id. So a
 * grant ends here before it can end there, and no late answer revives it.
 */
import { elapsed, type Instant, instant } from "../base/clock.js";
import { isLockError, LockLostError, type LossReason } from "../base/errors.js";
import type { Details, LockEventName } from "../base/events.js";
import { quietly } from "../base/work.js";
import { type Counts, type Downgrading, type Kind, TAKEN, TOMBSTONE_TTL, WRITES } from "../kinds/kind.js";
import { OwnerRecord } from "../owner/owner.js";
import type { ScriptCall } from "../scripts/script.js";
import type { Side } from "../waiting/wanted.js";
import { Leased } from "../watchdog/leased.js";
import type { Renewal } from "../watchdog/watchdog.js";
import { isDropped } from "./dropped.js";
import { End, endInBackground } from "./end.js";
import { type Held, HoldRecord } from "./hold-record.js";
import type { Asked } from "./options.js";

const NONE: readonly HoldRecord<Grant>[] = [];

export class Grant extends Leased implements Held, Counts {
  readonly kind: Kind;
  readonly token: bigint | undefined;
  reads = 0;
  /** It has read: late commands may know of reads that a hand-over does not. */
  hadReads = false;
  writes = 0;
  /** Its live holds, in the order of the grants. */
  holds: readonly HoldRecord<Grant>[] = NONE;
  /** Forced unlocks by this client that are on their way: the likely cause, if it turns out to be gone. */
  forcedBy = 0;
  /** How it was lost, if it was. */
  declare loss?: LockLostError;
  declare controller?: AbortController;
  /** Of its wire id, once its last hold is given back. */
  end: End | undefined;
  readonly #number: number;
  /** Undefined while nobody has asked for it: then only its `Hold` can give it back. */
  #owner: OwnerRecord | undefined;

  constructor(kind: Kind, number: number, owner: OwnerRecord | undefined, token: bigint | undefined) {
    super(kind.env);
    this.kind = kind;
    this.#number = number;
    this.#owner = owner;
    this.token = token;
  }

  get lockName(): string {
    return this.kind.lockName;
  }

  get lockKey(): string {
    return this.kind.lockKey;
  }

  /** Made anew each time: a stored text would be a part of the cost of an idle hold. */
  get wireId(): string {
    return this.env.wireId(this.#number);
  }

  get owner(): OwnerRecord {
    if (!this.#owner) {
      this.#owner = new OwnerRecord();
      if (this.state === "held") this.#owner.granted(this);
    }
    return this.#owner;
  }

  /** Whether the watchdog renews it: as long as one of its holds was taken without a lease. */
  get isRenewed(): boolean {
    return this.holds.some(({ renewed }) => renewed);
  }

  /** Whether its last release may grant the lock to a waiter of this process. */
  get mayPass(): boolean {
    const { env, kind } = this;
    return kind.traits.passes === true && !this.hadReads && !env.replicas && !env.closed;
  }

  get isGarbage(): boolean {
    return !this.#owner && this.holds[0]?.isGarbage === true;
  }

  // The deadline

  get remaining(): number {
    return this.state === "over" ? 0 : Math.max(0, this.left(instant(this.clock)));
  }

  /** The KEEP that renews it; undefined for one that was dropped. */
  renewal(): Renewal | undefined {
    if (isDropped(this)) return undefined;
    const { kind, wireId: field, reads, term } = this;
    const extraKeys = kind.extraKeys(field, reads);
    return { leased: this, script: kind.renewer, key: kind.key, field, extraKeys, term };
  }

  async extend(least: number): Promise<void> {
    const lease = this.isRenewed ? Math.max(least, this.env.settings.watchdogTimeout) : least;
    if (!this.lower(lease)) await this.keep(instant(this.clock), lease);
  }

  /**
   * KEEP, sent at `sent`: it notes the counts, and raises the TTL to `lease` milliseconds if that is given.
   * @throws LOCK_LOST if the grant turns out to be gone, UNAVAILABLE without an answer
   */
  keep(sent: Instant, lease?: number): Promise<void> {
    const { env, lockName, term } = this;
    // A TTL is never lowered, so the least lease changes nothing.
    const request = () => this.keeper(lease ?? 1);
    const read = (reply: unknown, now: Instant) => {
      const found = Number(reply);
      this.check(now);
      if (lease !== undefined && this.has(found)) this.raise(sent, lease, term);
      return this.#goesOn(found);
    };
    return env.runner.callUntilAnswered(lockName, request, read, 0, sent);
  }

  /** The KEEP of now. */
  keeper(lease: number): ScriptCall {
    return this.kind.keep(this.wireId, this, lease);
  }

  /** The KEEP of a nested call, sent at `sent`, has its answer. Whether the grant goes on; loses it if it is gone. */
  kept(found: number, sent: Instant, now: Instant, lease: number, term: number): boolean {
    this.check(now);
    if (this.has(found)) this.raise(sent, lease, term);
    else if (this.state === "held") this.gone(found);
    return this.state === "held";
  }

  /** Ends the write side of an owner that goes on as a reader. @throws as {@link keep} */
  #downgrade(): Promise<void> {
    const { env, lockName, wireId } = this;
    const kind = this.kind as Kind & Downgrading;
    const request = () =>
      kind.downgrade(wireId, Math.max(1, this.reads), Math.max(1, Math.ceil(this.remaining)));
    const read = (reply: unknown, now: Instant) => {
      this.check(now);
      return this.#goesOn(Number((reply as unknown[]).at(-1)));
    };
    // It is sent until it is answered, for other readers wait for it.
    return env.runner.withTimeout(lockName, env.runner.callUntilAnswered(lockName, request, read));
  }

  /** Whether it goes on after the server has answered a command with what was `found`. @throws LOCK_LOST if it was lost */
  #goesOn(found: number): Promise<void> | undefined {
    const isFound = this.has(found);
    if (!isFound && this.state === "held") throw this.gone(found);
    if (isFound && this.state !== "over") return undefined;
    // Its own END was executed first: that one's answer counts.
    if (this.end) return this.end.again();
    throw this.loss ?? new LockLostError(this.lockName, "expired", this.clock.wall());
  }

  // Its holds

  /** Counts a hold from the call on, not from the answer: an unlock meanwhile is not the last one. */
  count(side: Side): void {
    if (side === "read") {
      this.reads++;
      this.hadReads = true;
    } else this.writes++;
  }

  /** The call of a hold that was counted came to nothing. */
  uncount(side: Side): void {
    const isEmpty = this.#off(side);
    if (isEmpty && this.state === "held") void quietly(this.#giveUp(instant(this.clock)));
  }

  /** A hold that was counted is granted, by a command that was sent at `sent`. */
  hold(side: Side, asked: Asked, sent: Instant, now: Instant): HoldRecord<Grant> {
    const { watchdog } = this.env;
    const hold = new HoldRecord<Grant>(this, side, asked, now);
    if (this.holds === NONE) this.#begin(now);
    // A list that is pushed to has room for sixteen more.
    this.holds = this.holds === NONE ? [hold] : [...this.holds, hold];
    if (hold.renewed) watchdog.renewAfter(this, sent, now);
    watchdog.watch(this);
    return hold;
  }

  #begin(now: Instant): void {
    const { env, kind } = this;
    const { live } = env;
    const isAlone = this.writes > 0;
    this.knownAt = now.wall;
    // Whoever else of this client has the lock to itself has lost it: otherwise the server had not granted it.
    const other = live.get(kind.key);
    if (other?.isHeld && (isAlone || other.writes > 0)) other.gone(TAKEN);
    live.add(this, isAlone ? kind.key : this);
  }

  /** The innermost live hold on this side. */
  innermost(side: Side): HoldRecord<Grant> | undefined {
    return [...this.holds].reverse().find((hold) => hold.side === side);
  }

  giveBack(hold: HoldRecord<Grant>, now: Instant): Promise<void> {
    this.holds = this.holds.filter((other) => other !== hold);
    if (this.#off(hold.side)) return this.#giveUp(now, hold);
    this.env.watchdog.watch(this);
    const isDowngrade = hold.side === "write" && this.writes === 0;
    const released = isDowngrade ? this.#downgrade() : this.keep(now);
    return released.then(
      () => this.#tellRelease(hold),
      (error: unknown) => {
        if (isLockError(error, "LOCK_LOST")) this.#loseHold(hold, error);
        return hold.unreleased(error);
      },
    );
  }

  /** A hold whose release got no answer in time is given back once more. */
  askAgain(hold: HoldRecord<Grant>): Promise<void> {
    if (this.end) return this.end.again();
    return this.state === "held"
      ? this.keep(instant(this.clock)).then(() => this.#tellRelease(hold))
      : Promise.resolve();
  }

  // What the server says

  /** What KEEP found is what it has. A writer may read, so its write side speaks for both. */
  override has(found: number): boolean {
    if (!super.has(found)) return false;
    return (found & WRITES) !== 0 || this.writes === 0 || this.kind.traits.side === "only";
  }

  /** The server does not have it any more. */
  gone(found: number): LockLostError {
    return this.#lose(this.#lossBy(found));
  }

  /**
   * All its holds are lost, at once and for good; `since`: epoch milliseconds. What the server still has of it is ended in the
   * background.
   */
  lose(reason: LossReason, since: number = this.clock.wall()): void {
    if (this.state === "held") this.#lose(new LockLostError(this.lockName, reason, since));
  }

  /** END has answered the release of the last hold, `hold`, that was sent at `begun`. Gives the loss if it was lost. */
  over(found: number, begun: Instant, now: Instant, hold?: HoldRecord<Grant>): LockLostError | undefined {
    if (!hold) return undefined;
    // Its answer was lost, its tombstone lapsed, and a repetition found nothing.
    const isLate = elapsed(begun, now) > TOMBSTONE_TTL;
    const loss = found > 0 || isLate ? undefined : this.#lossBy(found);
    if (loss) this.#loseHold(hold, loss);
    else this.#tellRelease(hold, now.wall);
    return loss;
  }

  /** The last hold is given back, or the last call came to nothing. */
  #giveUp(now: Instant, hold?: HoldRecord<Grant>): Promise<void> {
    this.#stop("ending");
    this.end = new End(this, hold, this.#owner);
    return this.end.start(now);
  }

  #stop(state: "ending" | "over"): void {
    this.state = state;
    this.env.live.remove(this, this.kind.key);
    this.env.watchdog.watch(this);
    this.#owner?.drop(this);
  }

  #lose(loss: LockLostError): LockLostError {
    this.#stop("over");
    this.loss = loss;
    const lost = this.holds;
    this.holds = NONE;
    for (const hold of lost) this.#loseHold(hold, loss);
    void endInBackground(this.kind, this.wireId, this.#owner);
    return loss;
  }

  #loseHold(hold: HoldRecord<Grant>, loss: LockLostError): void {
    hold.lose(loss);
    if (!hold.isTold) return;
    const { reason, since } = loss;
    const held = Math.max(0, since - hold.acquiredAt);
    this.tell("lost", { reason, held });
  }

  tell<E extends LockEventName>(event: E, details = {} as Details<E>): void {
    this.kind.emit(event, details, this);
  }

  #tellRelease(hold: HoldRecord<Grant>, now: number = this.clock.wall()): void {
    if (hold.isTold) this.tell("released", { held: now - hold.acquiredAt });
  }

  /** Why it is gone, and since when, as far as that is known. */
  #lossBy(found: number): LockLostError {
    if (this.forcedBy > 0) return new LockLostError(this.lockName, "forced", this.clock.wall());
    return new LockLostError(this.lockName, found === TAKEN ? "taken" : "expired", this.knownAt);
  }

  /** Takes a count off; true if it was the last. */
  #off(side: Side): boolean {
    if (side === "read") this.reads--;
    else this.writes--;
    return this.reads + this.writes === 0;
  }
}
