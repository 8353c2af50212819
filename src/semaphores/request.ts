/** One call that waits for a number in Redis: free permits, or the opening of a latch. */
import { callChannel, isHeard, traceCall } from "../base/channels.js";
import { quietly } from "../base/work.js";
import type { PlainCommand } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import { Waiter } from "../waiting/waiter.js";
import type { Limits } from "../waiting/wanted.js";
import type { SharedNumber } from "./number.js";

/**
 * The answer to a try. Granted: `remaining` of the number is free for other calls. Refused: `ttl` is in how many
 * milliseconds it may be free without a message; -1 if that is not known.
 */
export type Attempt<G> =
  | { readonly granted: true; readonly value: G; readonly remaining?: number }
  | { readonly granted: false; readonly ttl: number };

export interface RequestOptions<G> extends Omit<Limits, "begun"> {
  /** Gets the grant before the caller, after the call has `waited` so many milliseconds. */
  readonly accept?: (granted: G, waited: number) => void;
}

export abstract class Request<G> extends Waiter<SharedNumber, G, G | undefined> {
  readonly #accept: RequestOptions<G>["accept"];
  #isUnsure = false;

  constructor(number: SharedNumber, { wait, signal, accept }: RequestOptions<G>) {
    super(number, { wait, signal, begun: number.env.clock.mono() });
    this.#accept = accept;
  }

  /** What a try sends. */
  protected abstract get attempt(): ScriptCall;

  /** @throws LOCK_LOST if a grant came too late */
  protected abstract read(reply: unknown): Attempt<G>;

  /** Gives back what a try was granted, or may still be granted; undefined if tries take nothing. */
  protected abstract undo(): Promise<unknown> | undefined;

  override async start(): Promise<G | undefined> {
    const { env, lockName, signal } = this;
    env.assertOpen(lockName);
    if (signal?.aborted) throw signal.reason;
    if (!isHeard(callChannel)) return super.start();
    const context = { clientId: env.clientId, lockName, kind: this.wanted.kind };
    return traceCall(context, this, () => super.start());
  }

  protected override outcome(granted: G | undefined): G | undefined {
    return granted;
  }

  override step(): void {
    this.env.sites.enter(this);
  }

  override tryNow(): void {
    if (!this.mayTry()) return;
    this.tries();
    this.sendTry();
  }

  protected override isGrant(reply: unknown): boolean {
    return this.read(reply).granted;
  }

  protected override request(): ScriptCall | PlainCommand {
    return this.try(this.attempt);
  }

  protected override answered(reply: unknown): void {
    const attempt = this.read(reply);
    const { site } = this;
    this.rest();
    if (!attempt.granted) return this.refuse(attempt.ttl);
    this.#accept?.(attempt.value, this.#waited);
    this.grant(attempt.value);
    if (attempt.remaining) site?.hintFor(attempt.remaining);
  }

  protected override failed(error: unknown): void {
    this.#isUnsure = true;
    this.rest();
    this.fail(error);
  }

  protected override late(reply: unknown): void {
    // Over one connection the undo is behind the try.
    if (!this.env.replicas) return;
    try {
      if (!this.isGrant(reply)) return;
    } catch {
      // It was granted, for a lease that is over here.
    }
    this.#isUnsure = true;
    void this.withdraw();
  }

  override unsure(): void {
    this.#isUnsure = true;
  }

  protected override withdraw(): Promise<void> | undefined {
    const undone = this.#isUnsure ? this.undo() : undefined;
    if (!undone) return undefined;
    this.#isUnsure = false;
    this.env.settle(undone);
    return quietly(undone);
  }

  get #waited(): number {
    return this.env.clock.mono() - this.begun;
  }
}
