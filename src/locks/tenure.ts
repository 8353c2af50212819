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
import { Owner } from "../owners/owner.js";
import type { Answer, Claim, ClaimTaker } from "./claim.js";
import type { Env } from "./env.js";
import type { Grant } from "./grant.js";
import { DONE, NOTHING_LEFT, OVER, SIDE_GONE } from "./primitive.js";
import { Returns } from "./returns.js";
import { Turns } from "./turns.js";
import { admitsUpgrade } from "./upgrade.js";
import { noop, quietly } from "./work.js";

/** Try again at once: things have changed since the try was asked for. */
const AGAIN: Attempt<Grant> = { granted: false, ttl: 0 };

export class Tenure extends Returns implements Stake, ClaimTaker {
  #owner: Party | undefined;
  readonly #key: string;
  /** Of its runs, once there is one. */
  #turns: Turns | undefined;
  /** Calls under way, if there are any. */
  #claims: List<Claim> | undefined;

  /** `key`: the lock's. */
  constructor(env: Env, owner: Party | undefined, key: string) {
    super(env);
    this.#owner = owner;
    this.#key = key;
    owner?.stakes.putStake(this);
  }

  /** Most calls are the only one of their owner: nobody ever asks for it. */
  get owner(): Party {
    if (!this.#owner) {
      this.#owner = new Owner();
      this.#owner.stakes.putStake(this);
      this.forgetIfIdle();
    }
    return this.#owner;
  }

  get lockKey(): string {
    return this.env.lockKey(this.#key);
  }

  /** The wire id of the owner's live holds. */
  get wireId(): string | undefined {
    return this.holding() ? this.sharedId : undefined;
  }

  holding(): boolean {
    this.dropExpired();
    return this.anyHeld;
  }

  // Calls that want a hold

  enter(claim: Claim): void {
    this.#claims ??= new List();
    this.#claims.add(claim);
  }

  admits(claim: Claim): boolean {
    if (!admitsUpgrade(claim, this)) return false;
    return !claim.frame || !this.#turns || this.#turns.admit(claim.frame, claim.primitive.sharing);
  }

  withdraw(claim: Claim): void {
    if (claim.doubtful && !claim.flying) void this.undoOutermost(claim);
  }

  leave(claim: Claim, taken: boolean): void {
    this.#claims?.remove(claim);
    if (!this.#claims?.first) this.#claims = undefined;
    if (taken) return;
    if (claim.flight) this.env.settle(claim.flight);
    // Granted after all, while the call was being ended.
    if (claim.grant) void quietly(this.release(claim.grant));
    else this.withdraw(claim);
    this.endRun(claim.frame);
    this.forgetIfIdle();
  }

  /** The run is over: a sibling may begin. */
  endRun(frame: Frame | undefined): void {
    if (!frame || !this.#turns?.end(frame)) return;
    if (this.#turns.idle) this.#turns = undefined;
    this.changed();
  }

  ready(claim: Claim): boolean {
    this.dropExpired();
    return !this.busy && this.empty && this.admits(claim);
  }

  /** Tries once. What the try leaves behind when it fails or is given up is settled before the next command. */
  attempt(claim: Claim, within: number, fellows: Fellows): Promise<Attempt<Grant>> {
    this.dropExpired();
    if (!this.busy && this.empty) {
      const flight = this.inOrder(() => this.outermost(claim, within, fellows));
      claim.flight = flight;
      return flight;
    }
    return new Promise((resolve, reject) => {
      let stale = false;
      const expire = () => {
        stale = true;
        reject(this.env.link.unavailable(claim.lockName));
      };
      // Behind a command that Redis does not answer, this one would wait without end.
      const cancel = this.busy ? this.env.clock.after(within, expire) : noop;
      const flight = this.inOrder(async () => {
        cancel();
        this.dropExpired();
        if (stale || claim.over || !this.admits(claim)) return resolve(AGAIN);
        // Also a hold on its way back is re-entered: its unlock was called later than this call.
        if (this.empty) resolve(await this.outermost(claim, within, fellows));
        else await this.nested(claim, within, { resolve, reject });
      });
      flight.catch(reject);
      claim.flight = flight;
    });
  }

  private async outermost(claim: Claim, within: number, fellows: Fellows): Promise<Attempt<Grant>> {
    const { primitive, lease } = claim;
    const { link, clock } = this.env;
    const left = link.prepared ? within : await link.prepare(claim.lockName, within);
    if (claim.over) return AGAIN;
    claim.number ??= this.env.mint();
    const { number, heir } = claim;
    const wireId = this.env.wireId(number);
    const losses = link.losses;
    const sent = claim.since ?? heir?.sent ?? instant(clock);
    claim.heir = undefined;
    claim.flying = true;
    try {
      const reply = await (heir?.acquired ?? primitive.acquire({ wireId, lease, within: left, fellows }));
      claim.flying = false;
      // A command that lived through a lost connection may arrive once more.
      claim.doubtful ||= link.losses !== losses;
      if (!reply.granted) {
        claim.doubtful ||= fellows !== undefined && claim.known;
        if (claim.over) this.withdraw(claim);
        return heir ? reply : { ...reply, ttl: reply.ttl || 1 };
      }
      const grant = claim.granted(number, sent, reply.token);
      if (!claim.over && grant.remaining > 0) return this.accept(claim, grant, sent);
    } catch (error) {
      claim.flying = false;
      claim.doubtful = true;
      if (isLockError(error, "REPLICAS")) await this.awhile(this.undoOutermost(claim));
      else if (claim.over) void this.undoOutermost(claim);
      throw error;
    }
    await this.awhile(this.undoOutermost(claim));
    throw new LockLostError(claim.lockName, "expired", clock.wall());
  }

  private async nested(claim: Claim, within: number, answer: Answer): Promise<void> {
    const { primitive, lease } = claim;
    const { clock } = this.env;
    const { number, token, wireId } = this.outermostHold as Grant;
    const callId = this.env.callId(wireId);
    const others = () => this.rest(primitive);
    const undo = () => quietly(primitive.undo(wireId, callId, others));
    const sent = claim.since ?? instant(clock);
    try {
      const word = await this.once(primitive, callId, () =>
        primitive.reenter(wireId, callId, others().terms.length + 1, lease, within),
      );
      if (word === OVER)
        throw new RedisUnavailableError(claim.lockName, new Error("its hold count was changed by others"));
      if (word !== DONE) {
        // A further hold on the write side needs that side, one on the read side any.
        const side = primitive.side === "write" || word === SIDE_GONE ? primitive.side : undefined;
        this.loseAll(this.absence(word, side), side);
        return answer.resolve(AGAIN);
      }
      const grant = claim.granted(number, sent, token);
      if (!claim.over && grant.remaining > 0) return answer.resolve(this.accept(claim, grant, sent));
      answer.reject(new LockLostError(claim.lockName, "expired", clock.wall()));
      await undo();
    } catch (error) {
      const undone = undo();
      if (isLockError(error, "REPLICAS")) await this.awhile(undone);
      answer.reject(error);
      await undone;
    }
  }

  /** Registers a hold everywhere before the call that wanted it resolves. */
  private accept(claim: Claim, grant: Grant, sent: Instant): Attempt<Grant> {
    trace('lock "%s": granted to %s', claim.lockName, grant.wireId);
    claim.grant = grant;
    // A nested call needs nothing of its outermost tries any more.
    if (grant.number !== claim.number) this.withdraw(claim);
    claim.doubtful = false;
    if (claim.frame) {
      this.#turns ??= new Turns();
      this.#turns.begin(claim.frame, claim.primitive.sharing);
    }
    this.add(grant);
    if (claim.origin === "bare") this.stack(grant);
    if (grant.renewed) this.granted(sent);
    this.changed();
    return { granted: true, value: grant, lease: claim.lease };
  }

  /** In the background: gives back what an outermost try got or may still get. */
  private undoOutermost(claim: Claim): Promise<unknown> {
    const { wireId } = claim;
    // A wire id that was undone has a tombstone; a further try needs a fresh one.
    claim.number = undefined;
    claim.heir = undefined;
    claim.doubtful = false;
    if (!wireId) return Promise.resolve();
    const undone = quietly(claim.primitive.undo(wireId, undefined, () => NOTHING_LEFT));
    this.env.settle(undone);
    return undone;
  }

  /** Waits for work to settle, as long as one command may take. */
  private awhile(work: Promise<unknown>): Promise<void> {
    return quietly(this.env.link.limited("", work));
  }

  protected override changed(): void {
    if (this.empty) this.env.rested(this);
    else this.env.live.add(this);
    this.env.watchdog.watch(this);
    if (this.#claims) for (const claim of this.#claims.all()) claim.resume();
    this.forgetIfIdle();
  }

  private forgetIfIdle(): void {
    if (this.empty && !this.stacked && !this.#claims && !this.#turns) this.#owner?.stakes.dropStake(this);
  }
}
