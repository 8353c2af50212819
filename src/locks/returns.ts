/** Giving holds back, and moving their deadlines: what a holder does with a hold that it has. */
import { elapsedSince, instant } from "../base/clock.js";
import { isLockError } from "../base/errors.js";
import { trace } from "../base/trace.js";
import type { Party } from "../owners/context.js";
import type { Grant, GrantHome, NamesHeir } from "./grant.js";
import { Keeper } from "./keeper.js";
import { countOf, DONE, eventOf, type Primitive, type Side, TOMBSTONE_TTL } from "./primitive.js";
import { concludeSuccession, NO_HEIR, successionOf } from "./succession.js";
import { noop, quietly } from "./work.js";

export abstract class Returns extends Keeper implements GrantHome {
  abstract readonly owner: Party;
  /** Taken by `lock()` or `tryLock()` and not given back, lost ones among them; each knows the one below it. */
  #top: Grant | undefined;

  check(): void {
    this.dropExpired();
  }

  hasBeside(grant: Grant): boolean {
    return this.held.some((other) => other !== grant);
  }

  protected get stacked(): boolean {
    return this.#top !== undefined;
  }

  protected stack(grant: Grant): void {
    grant.below = this.#top;
    this.#top = grant;
  }

  private unstack(grant: Grant): void {
    if (this.#top === grant) this.#top = grant.below;
    else {
      let above = this.#top;
      while (above && above.below !== grant) above = above.below;
      if (above) above.below = grant.below;
    }
    grant.below = undefined;
  }

  /**
   * Gives a hold back. A second call shares the first one's outcome; after UNAVAILABLE the work goes on, and a
   * further call asks again. `named`: who has it next, where its own line is not asked.
   */
  release(grant: Grant, named?: NamesHeir): Promise<void> {
    this.dropExpired();
    if (grant.outcome) return this.env.link.limited(grant.lockName, grant.outcome);
    this.unstack(grant);
    if (grant.state !== "lost") return this.startRelease(grant, named);
    grant.outcome = this.reportLoss(grant);
    this.env.settle(grant.outcome);
    return grant.outcome;
  }

  override hasBareHold({ key, side }: Primitive): boolean {
    for (let grant = this.#top; grant; grant = grant.below) {
      if (grant.isHeld && grant.primitive.key === key && grant.primitive.side === side) return true;
    }
    return false;
  }

  /** Gives back the innermost hold that `lock()` or `tryLock()` took on this side; undefined if there is none. */
  releaseInnermost(side: Side): Promise<void> | undefined {
    let grant = this.#top;
    while (grant && grant.primitive.side !== side) grant = grant.below;
    return grant && this.takeBack(grant);
  }

  private takeBack(grant: Grant): Promise<void> {
    grant.takenBack = true;
    return this.release(grant).catch((error: unknown) => {
      if (isLockError(error, "UNAVAILABLE") && grant.outcome && this.has(grant)) {
        // The work goes on; until it is done a further unlock asks for it again.
        this.stack(grant);
        void quietly(grant.outcome).then(() => this.unstack(grant));
      }
      throw error;
    });
  }

  /** Sets a hold's deadline to `lease` ms from now; one that is renewed never below the watchdog's lease. */
  extend(grant: Grant, lease: number): Promise<void> {
    const work = this.inOrder(() => this.setTerm(grant, lease));
    return this.env.link.limited(grant.lockName, work);
  }

  /** Resolves as the outcome does, or rejects UNAVAILABLE as soon as the release got no answer in time. */
  private startRelease(grant: Grant, named: NamesHeir | undefined): Promise<void> {
    grant.state = "ended";
    // Before the release is sent, so that no renewal follows it.
    this.changed();
    const queued = this.busy;
    let onSilence = noop;
    const outcome = this.inOrder(() => this.giveBack(grant, () => onSilence(), named));
    grant.outcome = outcome;
    this.env.settle(outcome);
    // Behind a command that is not answered this one is not even sent, so its silence would go unnoticed.
    if (queued) return this.env.link.limited(grant.lockName, outcome);
    return new Promise((resolve, reject) => {
      onSilence = () => reject(this.env.link.unavailable(grant.lockName));
      outcome.then(resolve, reject);
    });
  }

  /** The hold is off the stack by now. A close was told by the signal; its unlock has nothing to add. */
  private async reportLoss(grant: Grant): Promise<void> {
    this.changed();
    if (grant.loss && grant.loss.reason !== "closed") throw grant.loss;
  }

  private async giveBack(grant: Grant, onSilence: () => void, named?: NamesHeir): Promise<void> {
    const { primitive, wireId } = grant;
    const begun = instant(this.env.clock);
    const rest = () => this.rest(primitive, grant);
    const { left } = rest();
    const succession = left === 0 ? successionOf(this.env, primitive, named) : NO_HEIR;
    const { heir } = succession;
    const silence = () => {
      onSilence();
      heir?.silent();
    };
    try {
      const word = await this.letGo(primitive, wireId, { rest, onSilence: silence, heir });
      // So late, an earlier run of this command may have done it, and its tombstone or all holds left have lapsed since.
      const late = () =>
        elapsedSince(this.env.clock, begun) > (left > 0 ? Math.min(left, TOMBSTONE_TTL) : TOMBSTONE_TTL);
      if (word !== DONE && !late()) {
        const reason = this.absence(word, primitive.side);
        this.loseAll(reason, primitive.side);
        throw this.lose(grant, reason);
      }
      trace('lock "%s": given back by %s', grant.lockName, wireId);
      if (grant.announced && this.env.events.heard("released")) {
        this.env.events.emit("released", { ...eventOf(primitive), ownerId: wireId, held: grant.held });
      }
      // The script found none of the others' deadlines ahead, and released it.
      const others = this.rest(primitive, grant);
      if (others.terms.length > 0 && countOf(others) === 0) this.loseAll("expired", primitive.side);
    } finally {
      this.remove(grant);
      concludeSuccession(this.env, succession);
    }
  }

  private async setTerm(grant: Grant, lease: number): Promise<void> {
    this.dropExpired();
    grant.assertUsable();
    const { clock, settings } = this.env;
    const term = grant.renewed ? Math.max(lease, settings.watchdogTimeout) : lease;
    const sent = instant(clock);
    // Should the outcome stay unknown, the earlier of the two deadlines is the one that surely holds.
    grant.lowerTerm(sent, term);
    this.changed();
    const { primitive, wireId } = grant;
    const callId = this.env.callId(wireId);
    const word = await this.once(primitive, callId, () =>
      primitive.extend(wireId, callId, this.extended(grant, term)),
    );
    if (word !== DONE) {
      const reason = this.absence(word, primitive.side);
      this.loseAll(reason, primitive.side);
      throw this.lose(grant, reason);
    }
    this.dropExpired();
    // Given back meanwhile, it was extended all the same: the unlock was called later.
    if (grant.loss) throw grant.loss;
    grant.setTerm(sent, term);
    this.changed();
  }
}
