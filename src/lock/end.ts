/**
 * The end of a wire id: the release of a lock, the undoing of a call that was given up, the loss of a hold. It is sent until
 * the server has answered; it may arrive any number of times, before or behind any other command of the id.
 */
import type { Instant } from "../base/clock.js";
import { failure } from "../base/errors.js";
import { noop, quietly } from "../base/work.js";
import type { Kind, Released } from "../kinds/kind.js";
import type { OwnerRecord } from "../owner/owner.js";
import { Command } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import type { Site } from "../waiting/site.js";
import type { Call } from "./call.js";
import type { Grant } from "./grant.js";
import type { HoldRecord } from "./hold-record.js";

/** Ends the wire id of a grant whose last hold is given back. */
export class End extends Command {
  readonly #grant: Grant;
  readonly #hold: HoldRecord<Grant> | undefined;
  /** Knows that it is under way. */
  readonly #owner: OwnerRecord | undefined;
  readonly #site: Site | undefined;
  /** The turn of this process is over: other processes go first. */
  readonly #makesWay: boolean;
  /** The waiting call that the release may grant the lock, and the wire id of that. */
  #successor: Call | undefined;
  #successorId = "";
  /** How it ends. Its first time-out rejects what {@link start} has given; who asks again gets another one. */
  #outcome!: Promise<void>;
  #resolve!: (outcome?: Promise<never>) => void;

  constructor(grant: Grant, hold: HoldRecord<Grant> | undefined, owner: OwnerRecord | undefined) {
    const { env, kind } = grant;
    super(env.runner, grant.lockName);
    this.#grant = grant;
    this.#hold = hold;
    this.#owner = owner;
    owner?.ends(grant);
    this.#site = env.sites.get(kind);
    const first = this.#site?.first as Call | undefined;
    this.#successor = hold?.successor;
    const mayPass = !this.#successor && first !== undefined && grant.mayPass;
    const lasts = mayPass && this.#site?.turn.lasts === true;
    this.#makesWay = mayPass && !lasts;
    if (lasts && first?.succeed() !== undefined) this.#successor = first;
    this.#successorId = this.#successor?.wireId ?? "";
    if (this.#makesWay) this.#site?.turn.announces(this.#site.ears);
  }

  /** @throws LOCK_LOST if it was gone before, UNAVAILABLE without an answer in time */
  start(now: Instant): Promise<void> {
    const outcome = this.#ask();
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
    if (successor?.wants(this.#successorId)) {
      const heir = { wireId: this.#successorId, lease: successor.lease };
      return kind.pass(wireId, heir, this.#site?.second?.advertise());
    }
    return kind.end([wireId], this.#site?.first?.advertise());
  }

  protected override goesOn(): boolean {
    if (this.isLeftover) return true;
    this.#successor?.notSucceeded(this.#successorId);
    this.#reject(this.unavailable());
    void quietly(this.#ask());
    return true;
  }

  protected override answered(reply: unknown, now: Instant): void {
    const released = this.#grant.kind.readReleased(reply);
    this.#conclude(released, now);
    this.#over();
    const loss = this.#grant.over(released.found, this.sentAt, now, this.#hold);
    if (loss) this.#reject(loss);
    else this.#resolve();
  }

  protected override late(reply: unknown): void {
    this.#successor?.succeeded(this.#grant.kind.readReleased(reply), this.#successorId, true, this.sentAt);
  }

  protected override failed(error: unknown): void {
    this.#successor?.notSucceeded(this.#successorId);
    this.#over();
    this.#reject(error);
  }

  #over(): void {
    this.#grant.state = "over";
    this.#owner?.answered(this.#grant);
  }

  #ask(): Promise<void> {
    this.#outcome = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    return this.#outcome;
  }

  #reject(error: unknown): void {
    this.#resolve(this.#hold?.unreleased(error) ?? failure(error));
  }

  /** Tells the waiters of this process how the release has ended for them. */
  #conclude(released: Released, now: Instant): void {
    const site = this.#site;
    if (this.#successor) {
      return this.#successor.succeeded(released, this.#successorId, this.isLeftover, now);
    }
    if (!site?.first) return;
    if (!this.#makesWay) return site.released();
    const ms = site.turn.makesWay(released.heard, site.ears);
    if (ms === 0) site.hint();
    else if (site.first.state === "asleep") site.sleep(ms);
  }
}

/** Ends a wire id in the background, together with others of the lock where there are many. */
export function endInBackground(kind: Kind, wireId: string, owner?: OwnerRecord): Promise<void> {
  const { env, key, siteName: name } = kind;
  const ended = { lockKey: kind.lockKey, wireId };
  owner?.ends(ended);
  const undo = (wireIds: readonly string[]) => {
    const call = () => kind.end(wireIds, env.sites.get(kind)?.first?.advertise());
    return env.runner.callUntilAnswered(kind.lockName, call, noop);
  };
  const work = env.runner.cleanUp.add(wireId, { key, name, together: true, undo });
  return work.then(() => owner?.answered(ended));
}
