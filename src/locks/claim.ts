/** One call that wants a hold: what the engine asks of it is answered by its owner's tenure of the lock. */
import type { Instant } from "../base/clock.js";
import type { Item } from "../base/list.js";
import type { Attempt, Contender, Fellows, Standing } from "../engine/contender.js";
import type { Frame } from "../owners/context.js";
import type { Env } from "./env.js";
import { Grant, type Origin } from "./grant.js";
import type { Primitive } from "./primitive.js";
import { noop } from "./work.js";

/** Who answers the engine for a claim: the owner's tenure of the lock. */
export interface ClaimTaker {
  /**
   * False while it is the turn of a run that does not enclose the claim's.
   * @throws UPGRADE_REFUSED
   */
  admits(claim: Claim): boolean;
  /** True while the owner has a live hold, so that a further call re-enters. */
  holding(): boolean;
  attempt(claim: Claim, within: number, fellows: Fellows): Promise<Attempt<Grant>>;
  enter(claim: Claim): void;
  announce(claim: Claim): void;
  /** Gives up what the server may keep of its tries. */
  withdraw(claim: Claim): void;
  /** The engine is done with a claim; what nobody takes is undone. */
  leave(claim: Claim, taken: boolean): void;
}

export interface ClaimOptions {
  readonly tenure: ClaimTaker;
  readonly primitive: Primitive;
  readonly origin: Origin;
  /** Milliseconds. */
  readonly lease: number;
  readonly renewed: boolean;
  /** Of a `run`: it takes turns with the runs that do not enclose it. */
  readonly frame?: Frame | undefined;
  /** The run or scope that the call was made in. */
  readonly caller?: Frame | undefined;
}

export class Claim implements Contender<Grant>, Item {
  /** Among the claims of its tenure. */
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  readonly primitive: Primitive;
  readonly origin: Origin;
  readonly lease: number;
  readonly renewed: boolean;
  readonly frame: Frame | undefined;
  readonly caller: Frame | undefined;
  /** Of its outermost tries; minted at the first. */
  wireId: string | undefined;
  /** Nobody waits for the result any more. */
  over = false;
  /** The server may have something of its tries, or may yet get it: a grant that we did not hear of, a place. */
  doubtful = false;
  /** A try is on its way. */
  flying = false;
  /** Its last try, and what had to be settled after it. */
  flight: Promise<unknown> | undefined;
  grant: Grant | undefined;
  resume: () => void = noop;
  readonly #tenure: ClaimTaker;

  constructor(options: ClaimOptions) {
    this.#tenure = options.tenure;
    this.primitive = options.primitive;
    this.origin = options.origin;
    this.lease = options.lease;
    this.renewed = options.renewed;
    this.frame = options.frame;
    this.caller = options.caller;
  }

  /** The hold that this call was granted by a command sent at `sent`. */
  granted(env: Env, wireId: string, sent: Instant, token: bigint | undefined): Grant {
    const { primitive, origin, lease, renewed } = this;
    const { drift } = env.settings;
    const { frame } = this;
    return new Grant({
      clock: env.clock,
      drift,
      primitive,
      wireId,
      origin,
      frame,
      sent,
      lease,
      renewed,
      token,
    });
  }

  get lockName(): string {
    return this.primitive.lockName;
  }

  get line(): string {
    const { channel, side, standing } = this.primitive;
    return `${channel}/${side}/${standing.marked}`;
  }

  /** The server knows of it while it waits. */
  get known(): boolean {
    return this.standing.places || this.standing.marked;
  }

  get standing(): Standing {
    return this.primitive.standing;
  }

  get channel(): string {
    return this.primitive.wakesOn(this.wireId ?? "");
  }

  get place(): string | undefined {
    return this.doubtful ? this.wireId : undefined;
  }

  admitted(): boolean {
    return this.#tenure.admits(this);
  }

  reenters(): boolean {
    return this.#tenure.holding();
  }

  attempt(within: number, fellows: Fellows): Promise<Attempt<Grant>> {
    return this.#tenure.attempt(this, within, fellows);
  }

  enter(resume: () => void): void {
    this.resume = resume;
    this.#tenure.enter(this);
  }

  waiting(): void {
    this.#tenure.announce(this);
  }

  withdraw(): void {
    this.#tenure.withdraw(this);
  }

  leave(taken: boolean): void {
    this.over = true;
    this.#tenure.leave(this, taken);
  }
}
