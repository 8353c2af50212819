/**
 * What one owner has of one lock: its holds, its calls that want one, and the order of its commands.
 *
 * Commands of one owner on one lock go one at a time, in call order, so the hold count on the server is always known
 * here and can be sent as an absolute number. A command whose outcome is unknown is settled before the next one.
 */
import { type Instant, instant } from "../base/clock.js";
import { isLockError, LockLostError, RedisUnavailableError } from "../base/errors.js";
import { List } from "../base/list.js";
import { trace } from "../base/trace.js";
import type { Attempt, Fellows } from "../engine/contender.js";
import type { Frame, Party, Stake } from "../owners/context.js";
import type { Claim, ClaimTaker } from "./claim.js";
import type { Env } from "./env.js";
import type { Grant } from "./grant.js";
import { eventOf, Holdings } from "./holdings.js";
import { Keeper } from "./keeper.js";
import { DONE, NOTHING_LEFT, OVER, SIDE_GONE } from "./primitive.js";
import { Returns } from "./returns.js";
import { Serial } from "./serial.js";
import { Turns } from "./turns.js";
import { admitsUpgrade } from "./upgrade.js";
import { quietly } from "./work.js";

/** Try again at once: things have changed since the try was asked for. */
const AGAIN: Attempt<Grant> = { granted: false, ttl: 0 };

/** The promise of one nested try: it may be answered before what the try leaves behind is settled. */
interface Answer {
  resolve(attempt: Attempt<Grant>): void;
  reject(error: unknown): void;
}

export class Tenure implements Stake, ClaimTaker {
  readonly lockKey: string;
  readonly returns: Returns;
  readonly #env: Env;
  readonly #owner: Party;
  readonly #serial = new Serial();
  readonly #turns = new Turns();
  readonly #claims = new List<Claim>();
  readonly #holdings: Holdings;
  readonly #keeper: Keeper;

  constructor(env: Env, owner: Party, lockKey: string) {
    const changed = () => this.#changed();
    this.#env = env;
    this.#owner = owner;
    this.lockKey = lockKey;
    this.#holdings = new Holdings(env, this.#serial, changed);
    this.#keeper = new Keeper(env, this.#holdings);
    this.returns = new Returns(env, this.#holdings, this.#serial, changed);
    owner.stakes.set(lockKey, this);
  }

  /** The wire id of the owner's live holds. */
  get wireId(): string | undefined {
    return this.holding() ? this.#holdings.wireId : undefined;
  }

  holding(): boolean {
    this.#holdings.dropExpired();
    return this.#holdings.anyHeld;
  }

  // Calls that want a hold

  enter(claim: Claim): void {
    this.#claims.add(claim);
  }

  admits(claim: Claim): boolean {
    if (!admitsUpgrade(claim, this.#holdings)) return false;
    return !claim.frame || this.#turns.admit(claim.frame, claim.primitive.sharing);
  }

  announce(claim: Claim): void {
    claim.wireId ??= this.#env.wireId();
    trace('lock "%s": %s waits', claim.lockName, claim.wireId);
    this.#env.events.emit("waiting", { ...eventOf(claim.primitive), ownerId: this.wireId ?? claim.wireId });
  }

  withdraw(claim: Claim): void {
    if (claim.doubtful && !claim.flying) void this.#undoOutermost(claim);
  }

  leave(claim: Claim, taken: boolean): void {
    this.#claims.remove(claim);
    if (taken) return;
    if (claim.flight) this.#env.settle(claim.flight);
    // Granted after all, while the call was being ended.
    if (claim.grant) void quietly(this.returns.release(claim.grant));
    else this.withdraw(claim);
    this.endRun(claim.frame);
    this.#forgetIfIdle();
  }

  /** The run is over: a sibling may begin. */
  endRun(frame: Frame | undefined): void {
    if (frame && this.#turns.end(frame)) this.#changed();
  }

  /** Tries once. What the try leaves behind when it fails or is given up is settled before the next command. */
  attempt(claim: Claim, within: number, fellows: Fellows): Promise<Attempt<Grant>> {
    this.#holdings.dropExpired();
    if (!this.#serial.busy && this.#holdings.empty) {
      const flight = this.#serial.run(() => this.#outermost(claim, within, fellows));
      claim.flight = flight;
      return flight;
    }
    return new Promise((resolve, reject) => {
      let stale = false;
      // Behind a command that Redis does not answer, this one would wait without end.
      const cancel = this.#env.clock.after(within, () => {
        stale = true;
        reject(new RedisUnavailableError(claim.lockName));
      });
      const flight = this.#serial.run(async () => {
        cancel();
        this.#holdings.dropExpired();
        if (stale || claim.over || !this.admits(claim)) return resolve(AGAIN);
        // Also a hold on its way back is re-entered: its unlock was called later than this call.
        if (this.#holdings.empty) resolve(await this.#outermost(claim, within, fellows));
        else await this.#nested(claim, within, { resolve, reject });
      });
      flight.catch(reject);
      claim.flight = flight;
    });
  }

  async #outermost(claim: Claim, within: number, fellows: Fellows): Promise<Attempt<Grant>> {
    const { primitive, lease } = claim;
    const { link, clock } = this.#env;
    const left = link.prepared ? within : await link.prepare(claim.lockName, within);
    if (claim.over) return AGAIN;
    claim.wireId ??= this.#env.wireId();
    const { wireId } = claim;
    const losses = link.losses;
    const sent = claim.since ?? instant(clock);
    claim.flying = true;
    try {
      const reply = await primitive.acquire({ wireId, lease, within: left, fellows });
      claim.flying = false;
      // A command that lived through a lost connection may arrive once more.
      claim.doubtful ||= link.losses !== losses;
      if (!reply.granted) {
        claim.doubtful ||= fellows !== undefined && claim.known;
        if (claim.over) this.withdraw(claim);
        return { ...reply, ttl: reply.ttl || 1 };
      }
      const grant = claim.granted(wireId, sent, reply.token);
      if (!claim.over && grant.remaining > 0) return this.#accept(claim, grant, sent);
    } catch (error) {
      claim.flying = false;
      claim.doubtful = true;
      if (isLockError(error, "REPLICAS")) await this.#awhile(this.#undoOutermost(claim));
      else if (claim.over) void this.#undoOutermost(claim);
      throw error;
    }
    await this.#awhile(this.#undoOutermost(claim));
    throw new LockLostError(claim.lockName, "expired", clock.wall());
  }

  async #nested(claim: Claim, within: number, answer: Answer): Promise<void> {
    const { primitive, lease } = claim;
    const { clock } = this.#env;
    const wireId = this.#holdings.wireId as string;
    const callId = this.#env.callId(wireId);
    const others = () => this.#holdings.rest(primitive);
    const undo = () => quietly(primitive.undo(wireId, callId, others));
    const sent = claim.since ?? instant(clock);
    try {
      const word = await this.#holdings.once(primitive, callId, () =>
        primitive.reenter(wireId, callId, others().terms.length + 1, lease, within),
      );
      if (word === OVER)
        throw new RedisUnavailableError(claim.lockName, new Error("its hold count was changed by others"));
      if (word !== DONE) {
        // A further hold on the write side needs that side, one on the read side any.
        const side = primitive.side === "write" || word === SIDE_GONE ? primitive.side : undefined;
        this.#holdings.loseAll(this.#holdings.absence(word, side), side);
        return answer.resolve(AGAIN);
      }
      const grant = claim.granted(wireId, sent, this.#holdings.token);
      if (!claim.over && grant.remaining > 0) return answer.resolve(this.#accept(claim, grant, sent));
      answer.reject(new LockLostError(claim.lockName, "expired", clock.wall()));
      await undo();
    } catch (error) {
      const undone = undo();
      if (isLockError(error, "REPLICAS")) await this.#awhile(undone);
      answer.reject(error);
      await undone;
    }
  }

  /** Registers a hold everywhere before the call that wanted it resolves. */
  #accept(claim: Claim, grant: Grant, sent: Instant): Attempt<Grant> {
    trace('lock "%s": granted to %s', claim.lockName, grant.wireId);
    claim.grant = grant;
    // A nested call needs nothing of its outermost tries any more.
    if (grant.wireId !== claim.wireId) this.withdraw(claim);
    claim.doubtful = false;
    if (claim.frame) this.#turns.begin(claim.frame, claim.primitive.sharing);
    this.#holdings.add(grant);
    if (grant.renewed) this.#keeper.granted(sent);
    this.#changed();
    return { granted: true, value: grant, lease: claim.lease };
  }

  /** In the background: gives back what an outermost try got or may still get. */
  #undoOutermost(claim: Claim): Promise<unknown> {
    const { wireId } = claim;
    // A wire id that was undone has a tombstone; a further try needs a fresh one.
    claim.wireId = undefined;
    claim.doubtful = false;
    if (!wireId) return Promise.resolve();
    const undone = quietly(claim.primitive.undo(wireId, undefined, () => NOTHING_LEFT));
    this.#env.settle(undone);
    return undone;
  }

  /** Waits for work to settle, as long as one command may take. */
  #awhile(work: Promise<unknown>): Promise<void> {
    return quietly(this.#env.link.limited("", work));
  }

  /** After holds, turns or deadlines have changed: whoever depends on them looks again. */
  #changed(): void {
    if (this.#holdings.empty) this.#env.rested(this.#holdings);
    else this.#env.live.add(this.#holdings);
    this.#env.watchdog.watch(this.#keeper);
    if (this.#claims.first) for (const claim of this.#claims.all()) claim.resume();
    this.#forgetIfIdle();
  }

  #forgetIfIdle(): void {
    const { empty, bare } = this.#holdings;
    const idle = empty && bare.length === 0 && !this.#claims.first && this.#turns.idle;
    if (idle && this.#owner.stakes.get(this.lockKey) === this) this.#owner.stakes.delete(this.lockKey);
  }
}
