/**
 * The end of a wire id: the release of a lock, the undoing of a call that was given up, the loss of a hold. It is sent until
 * the server has answered; it may arrive any number of times, before or behind any other command of the id.
 */
import { failure } from "../base/caller.js";
import type { Instant } from "../base/clock.js";
import { quietly } from "../base/work.js";
import type { Ended, Heir, Kind, Passed } from "../kinds/kind.js";
import type { Ending, OwnerRecord } from "../owner/record.js";
import { Command } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import type { Site } from "../waiting/site.js";
import type { Grant } from "./grant.js";
import type { HoldRecord } from "./hold-record.js";

/** A waiting call that a release may grant the lock. */
export interface Successor extends Heir {
  /** The call does not want it any more, or not under this wire id. */
  readonly isGone: boolean;
  /** The release has been answered; `late`: after {@link silent}. */
  passed(passed: Passed, late: boolean, now: Instant): void;
  /** There is no answer in time: whether it has the lock is unknown. */
  silent(): void;
}

/** The answer of an ordinary END. */
const NOT_PASSED: Passed = { heard: 0, found: [], has: false };

/** Ends the wire id of a grant whose last hold is given back. */
export class End extends Command {
  readonly #grant: Grant;
  readonly #hold: HoldRecord<Grant> | undefined;
  /** Its owner knows that it is under way. */
  readonly #ending: Ending | undefined;
  readonly #site: Site | undefined;
  /** The turn of this process is over: other processes go first. */
  readonly #makesWay: boolean;
  #successor: Successor | undefined;
  #isSilent = false;
  /** How it ends. Its first time-out rejects what {@link start} has given; who asks again gets another one. */
  #outcome!: Promise<void>;
  #resolve!: (outcome?: Promise<never>) => void;

  constructor(grant: Grant, hold: HoldRecord<Grant> | undefined) {
    const { env, kind } = grant;
    super(env.runner);
    this.#grant = grant;
    this.#hold = hold;
    this.#ending = grant.knownOwner?.ends(grant);
    this.#site = env.sites.get(kind);
    const first = this.#site?.first;
    const mayPass =
      first !== undefined && kind.traits.passes === true && !grant.hadReads && !env.replicas && !env.closed;
    const lasts = mayPass && this.#site?.turn.lasts === true;
    this.#makesWay = mayPass && !lasts;
    if (lasts) this.#successor = first.succeed();
    if (this.#makesWay) this.#site?.turn.announces(this.#site.ears);
  }

  get lockName(): string {
    return this.#grant.lockName;
  }

  /** @throws LOCK_LOST if it was gone before, UNAVAILABLE without an answer in time */
  start(now: Instant): Promise<void> {
    const { env } = this.#grant;
    const outcome = this.#ask();
    env.workBegun();
    this.begin(undefined, now);
    return outcome;
  }

  /** How it ends. @throws as {@link start} */
  again(): Promise<void> {
    return this.#grant.env.runner.withTimeout(this.lockName, this.#outcome);
  }

  protected override request(): ScriptCall {
    const { kind, wireId } = this.#grant;
    const successor = this.#successor;
    if (successor && !successor.isGone) return kind.pass(wireId, successor, this.#site?.second?.advertise());
    return kind.end([wireId], this.#site?.first?.advertise());
  }

  protected override goesOn(): boolean {
    if (this.#isSilent) return true;
    this.#isSilent = true;
    this.#successor?.silent();
    this.#reject(this.unavailable());
    void quietly(this.#ask());
    return true;
  }

  protected override answered(reply: unknown, now: Instant): void {
    const { kind } = this.#grant;
    const isPass = (reply as unknown[]).length > 2;
    const passed = isPass ? kind.readPassed(reply) : undefined;
    const { heard, found } = passed ?? kind.readEnded(reply);
    this.#conclude(passed, heard, now);
    this.#over();
    try {
      this.#grant.over(found[0] ?? 0, this.sentAt, now, this.#hold);
      this.#resolve();
    } catch (error) {
      this.#reject(error);
    }
  }

  protected override late(reply: unknown): void {
    if (this.#successor && (reply as unknown[]).length > 2) {
      this.#successor.passed(this.#grant.kind.readPassed(reply), true, this.sentAt);
    }
  }

  protected override failed(error: unknown): void {
    this.#successor?.silent();
    this.#grant.env.workDone();
    this.#over();
    this.#reject(error);
  }

  #over(): void {
    this.#grant.state = "over";
    if (this.#ending) this.#grant.owner.answered(this.#ending);
  }

  #ask(): Promise<void> {
    this.#outcome = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    return this.#outcome;
  }

  #reject(error: unknown): void {
    this.#hold?.unreleased(error);
    this.#resolve(failure(error));
  }

  /** Tells the waiters of this process how the release has ended for them. */
  #conclude(passed: Passed | undefined, heard: number, now: Instant): void {
    const site = this.#site;
    this.#grant.env.workDone();
    if (this.#successor) return this.#successor.passed(passed ?? NOT_PASSED, this.#isSilent, now);
    if (!site?.first) return;
    if (!this.#makesWay) return site.released();
    const ms = site.turn.makesWay(heard, site.ears);
    if (ms === 0) site.hint();
    else if (site.first.state === "asleep") site.sleep(ms);
  }
}

/** Ends a wire id in the background, together with others of the lock where there are many. */
export function endInBackground(kind: Kind, wireId: string, owner?: OwnerRecord): Promise<void> {
  const { env, key } = kind;
  const ending = owner?.ends({ lockKey: kind.lockKey, wireId });
  const undo = (wireIds: readonly string[]) => {
    const call = () => kind.end(wireIds, env.sites.get(kind)?.first?.advertise());
    return env.runner.callUntilAnswered(kind.lockName, call, (reply): Ended => kind.readEnded(reply));
  };
  const name = `${kind.kind}/${kind.side}/${key}`;
  const ended = quietly(env.runner.cleanUp.add(wireId, { key, name, together: true, undo })).then(() => {
    if (ending) owner?.answered(ending);
  });
  env.settle(ended);
  return ended;
}
