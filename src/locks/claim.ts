/** One call that wants a hold: what the engine asks of it is answered by its owner's tenure of the lock. */
import { type Instant, instant } from "../base/clock.js";
import type { Item } from "../base/list.js";
import { trace } from "../base/trace.js";
import type { Attempt, Contender, Fellows, Listener, Standing } from "../engine/contender.js";
import type { Wait } from "../engine/wait.js";
import type { Frame } from "../owners/context.js";
import type { Env } from "./env.js";
import { Grant, type GrantHome } from "./grant.js";
import { Heir } from "./heir.js";
import { eventOf, type Primitive } from "./primitive.js";

/** What a call wants the hold for. Only `bare` ones are given back by `lock.unlock()`. */
export type Origin = "bare" | "run" | "member";

/** Who answers the engine for a claim: the owner's tenure of the lock. */
export interface ClaimTaker extends GrantHome {
  /** The wire id of the owner's live holds. */
  readonly wireId: string | undefined;
  /**
   * False while it is the turn of a run that does not enclose the claim's.
   * @throws UPGRADE_REFUSED
   */
  admits(claim: Claim): boolean;
  /** True while the owner has a live hold, so that a further call re-enters. */
  holding(): boolean;
  attempt(claim: Claim, within: number, fellows: Fellows): Promise<Attempt<Grant>>;
  /** Whether a try for an outermost hold would be sent at once. */
  ready(claim: Claim): boolean;
  enter(claim: Claim): void;
  /** Gives up what the server may keep of its tries. */
  withdraw(claim: Claim): void;
  /** The engine is done with a claim; what nobody takes is undone. */
  leave(claim: Claim, taken: boolean): void;
}

/** The promise of one nested try: it may be answered before what the try leaves behind is settled. */
export interface Answer {
  resolve(attempt: Attempt<Grant>): void;
  reject(error: unknown): void;
}

export interface ClaimOptions {
  readonly env: Env;
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
  /** Told once when it has to wait. */
  readonly onWaiting?: (() => void) | undefined;
}

/** Those who wait for the same side of the same lock stand in one line. */
export function lineOf({ key, side, standing }: Primitive): string {
  return `${side}/${standing.marked}/${key}`;
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
  /** From when its lease counts; if absent from when its command is sent. */
  since: Instant | undefined;
  /** Of the wire id of its outermost tries; minted at the first. */
  number: number | undefined;
  /** Nobody waits for the result any more. */
  over = false;
  /** The server may have something of its tries, or may yet get it: a grant that we did not hear of, a place. */
  doubtful = false;
  /** A try is on its way. */
  flying = false;
  /** Its last try, and what had to be settled after it. */
  flight: Promise<unknown> | undefined;
  grant: Grant | undefined;
  /** Its next try is the command by which another gives the lock back. */
  heir: Heir | undefined;
  #wait: Pick<Wait, "resume"> | undefined;
  readonly #onWaiting: (() => void) | undefined;
  readonly #env: Env;
  readonly #tenure: ClaimTaker;

  constructor(options: ClaimOptions) {
    this.#env = options.env;
    this.#tenure = options.tenure;
    this.primitive = options.primitive;
    this.origin = options.origin;
    this.lease = options.lease;
    this.renewed = options.renewed;
    this.frame = options.frame;
    this.caller = options.caller;
    this.#onWaiting = options.onWaiting;
  }

  /** The hold that this call was granted by a command sent at `sent`. */
  granted(number: number, sent: Instant, token: bigint | undefined): Grant {
    const { primitive, lease, renewed, frame } = this;
    return new Grant({
      home: this.#tenure,
      primitive,
      number,
      frame,
      sent,
      lease,
      renewed,
      token,
    });
  }

  get wireId(): string | undefined {
    return this.number === undefined ? undefined : this.#env.wireId(this.number);
  }

  get lockName(): string {
    return this.primitive.lockName;
  }

  get line(): string {
    return lineOf(this.primitive);
  }

  /** The server knows of it while it waits. */
  get known(): boolean {
    return this.standing.places || this.standing.marked;
  }

  get standing(): Standing {
    return this.primitive.standing;
  }

  get share(): number {
    return 1;
  }

  get pause(): number {
    return 0;
  }

  get away(): boolean {
    return this.#env.link.away;
  }

  listen(listener: Listener): () => void {
    return this.#env.router.subscribe(this.primitive.wakesOn(this.wireId ?? ""), listener);
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

  /** Takes part in the command by which another gives the lock back; undefined if it cannot. `own`: see {@link Heir}. */
  inherit(own: number | undefined): Heir | undefined {
    if (this.over || this.flying || this.heir || !this.#tenure.ready(this)) return undefined;
    this.number ??= this.#env.mint();
    const { lockName, lease, number } = this;
    const wireId = this.#env.wireId(number);
    const unavailable = () => this.#env.link.unavailable(lockName);
    const gone = () => this.over || this.number !== number;
    this.heir = new Heir({ unavailable, wireId, lease, own, gone, sent: instant(this.#env.clock) });
    // From now on the server may have a hold for it, whether it comes to the try or not.
    this.doubtful = true;
    return this.heir;
  }

  enter(wait: Pick<Wait, "resume">): void {
    this.#wait = wait;
    this.#tenure.enter(this);
  }

  /** What admits it may have changed. */
  resume(): void {
    this.#wait?.resume();
  }

  waiting(): void {
    this.number ??= this.#env.mint();
    const { lockName, wireId } = this;
    const { events } = this.#env;
    trace('lock "%s": %s waits', lockName, wireId);
    if (events.heard("waiting")) {
      events.emit("waiting", {
        ...eventOf(this.primitive),
        ownerId: this.#tenure.wireId ?? (wireId as string),
      });
    }
    this.#onWaiting?.();
  }

  withdraw(): void {
    this.#tenure.withdraw(this);
  }

  leave(taken: boolean): void {
    this.over = true;
    this.#tenure.leave(this, taken);
  }
}
