/** Giving holds back, and moving their deadlines: what a holder does with a hold that it has. */
import { elapsedSince, instant } from "../base/clock.js";
import { isLockError, RedisUnavailableError } from "../base/errors.js";
import { trace } from "../base/trace.js";
import type { Env } from "./env.js";
import type { Grant, GrantHome } from "./grant.js";
import { eventOf, type Holdings } from "./holdings.js";
import { countOf, DONE, type Side, TOMBSTONE_TTL } from "./primitive.js";
import type { Serial } from "./serial.js";
import { quietly } from "./work.js";

export class Returns implements GrantHome {
  readonly #env: Env;
  readonly #holdings: Holdings;
  readonly #serial: Serial;
  readonly #changed: () => void;
  /** Whether the last release had to stand behind another command. */
  #queued = false;

  constructor(env: Env, holdings: Holdings, serial: Serial, changed: () => void) {
    this.#env = env;
    this.#holdings = holdings;
    this.#serial = serial;
    this.#changed = changed;
  }

  check(): void {
    this.#holdings.dropExpired();
  }

  /**
   * Gives a hold back. A second call shares the first one's outcome; after UNAVAILABLE the work goes on, and a
   * further call asks again.
   */
  release(grant: Grant): Promise<void> {
    this.#holdings.dropExpired();
    if (!grant.outcome) {
      this.#holdings.unstack(grant);
      grant.outcome = grant.state === "lost" ? this.#reportLoss(grant) : this.#startRelease(grant);
      this.#env.settle(grant.outcome);
      // Behind a command that is not answered this one is not even sent, so its silence would go unnoticed.
      if (!this.#queued) return this.#untilSilence(grant, grant.outcome);
    }
    return this.#env.link.limited(grant.lockName, grant.outcome);
  }

  /** The outcome, or UNAVAILABLE as soon as the release got no answer in time. */
  #untilSilence(grant: Grant, outcome: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      grant.onSilence = () => reject(new RedisUnavailableError(grant.lockName));
      outcome.then(resolve, reject);
    });
  }

  /** Gives back the innermost hold that `lock()` or `tryLock()` took on this side; undefined if there is none. */
  releaseInnermost(side: Side): Promise<void> | undefined {
    const { bare } = this.#holdings;
    const grant = bare.filter(({ primitive }) => primitive.side === side).at(-1);
    if (!grant) return undefined;
    grant.takenBack = true;
    return this.release(grant).catch((error: unknown) => {
      if (isLockError(error, "UNAVAILABLE") && grant.outcome && this.#holdings.has(grant)) {
        // The work goes on; until it is done a further unlock asks for it again.
        bare.push(grant);
        void quietly(grant.outcome).then(() => this.#holdings.unstack(grant));
      }
      throw error;
    });
  }

  /** Sets a hold's deadline to `lease` ms from now; one that is renewed never below the watchdog's lease. */
  extend(grant: Grant, lease: number): Promise<void> {
    const work = this.#serial.run(() => this.#extend(grant, lease));
    return this.#env.link.limited(grant.lockName, work);
  }

  #startRelease(grant: Grant): Promise<void> {
    grant.state = "ended";
    // Before the release is sent, so that no renewal follows it.
    this.#changed();
    this.#queued = this.#serial.busy;
    return this.#serial.run(() => this.#giveBack(grant));
  }

  /** The hold is off the stack by now. A close was told by the signal; its unlock has nothing to add. */
  async #reportLoss(grant: Grant): Promise<void> {
    this.#changed();
    if (grant.loss && grant.loss.reason !== "closed") throw grant.loss;
  }

  async #giveBack(grant: Grant): Promise<void> {
    const { primitive, wireId } = grant;
    const holdings = this.#holdings;
    const begun = instant(this.#env.clock);
    try {
      const rest = () => holdings.rest(primitive, grant);
      const { left } = rest();
      const word = await holdings.release(primitive, wireId, rest, () => grant.onSilence?.());
      // So late, an earlier run of this command may have done it, and its tombstone or all holds left have lapsed since.
      const late =
        elapsedSince(this.#env.clock, begun) > (left > 0 ? Math.min(left, TOMBSTONE_TTL) : TOMBSTONE_TTL);
      if (word !== DONE && !late) {
        const reason = holdings.absence(word, primitive.side);
        holdings.loseAll(reason, primitive.side);
        throw holdings.lose(grant, reason);
      }
      trace('lock "%s": given back by %s', grant.lockName, wireId);
      if (grant.announced && this.#env.events.heard("released")) {
        this.#env.events.emit("released", { ...eventOf(primitive), ownerId: wireId, held: grant.held });
      }
      // The script found none of the others' deadlines ahead, and released it.
      const others = holdings.rest(primitive, grant);
      if (others.terms.length > 0 && countOf(others) === 0) holdings.loseAll("expired", primitive.side);
    } finally {
      holdings.remove(grant);
    }
  }

  async #extend(grant: Grant, lease: number): Promise<void> {
    this.#holdings.dropExpired();
    grant.assertUsable();
    const { clock, settings } = this.#env;
    const term = grant.renewed ? Math.max(lease, settings.watchdogTimeout) : lease;
    const sent = instant(clock);
    // Should the outcome stay unknown, the earlier of the two deadlines is the one that surely holds.
    grant.lowerTerm(sent, term);
    this.#changed();
    const { primitive, wireId } = grant;
    const callId = this.#env.callId(wireId);
    const word = await this.#holdings.once(primitive, callId, () =>
      primitive.extend(wireId, callId, this.#holdings.extended(grant, term)),
    );
    if (word !== DONE) {
      const reason = this.#holdings.absence(word, primitive.side);
      this.#holdings.loseAll(reason, primitive.side);
      throw this.#holdings.lose(grant, reason);
    }
    this.#holdings.dropExpired();
    // Given back meanwhile, it was extended all the same: the unlock was called later.
    if (grant.loss) throw grant.loss;
    grant.setTerm(sent, term);
    this.#changed();
  }
}
