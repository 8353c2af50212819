/** One call that waits for a number in Redis: free permits, or the opening of a latch. */
import { checkSignal } from "../base/arguments.js";
import { callChannel, isHeard, traceCall } from "../base/channels.js";
import type { PlainCommand } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import { Waiter } from "../waiting/waiter.js";
import type { SharedNumber } from "./number.js";

/**
 * The answer to a try. Granted: `remaining` of the number is free for other calls. Refused: `ttl` is in how many
 * milliseconds it may be free without a message; -1 if that is not known.
 */
export type Attempt<G> =
  | { readonly granted: true; readonly value: G; readonly remaining?: number }
  | { readonly granted: false; readonly ttl: number };

/** `G`: what a try is granted; `R`: what the call resolves with, or with undefined if it is refused and its time is up. */
export abstract class Request<G, R = G> extends Waiter<SharedNumber, G, R | undefined> {
  #isUndone = false;

  constructor(number: SharedNumber, wait: number, signal: unknown) {
    super(number, { wait, signal: checkSignal(signal), begun: number.env.clock.mono() });
  }

  /** What a try sends. */
  protected abstract get attempt(): ScriptCall;

  /** @throws LOCK_LOST if a grant came too late */
  protected abstract read(reply: unknown): Attempt<G>;

  /** It is granted: what the call has of that is known, and told, before it resolves. */
  protected abstract accept(granted: G, waited: number): R;

  override async start(): Promise<R | undefined> {
    const { env, lockName, asked } = this;
    env.assertOpen(lockName);
    if (asked.signal?.aborted) throw asked.signal.reason;
    if (!isHeard(callChannel)) return super.start();
    const context = { clientId: env.clientId, lockName, kind: this.wanted.kind };
    return traceCall(context, asked, () => super.start());
  }

  protected override outcome(granted: G | undefined): R | undefined {
    return granted === undefined ? undefined : this.accept(granted, this.waited);
  }

  override step(): void {
    this.env.sites.enter(this);
  }

  override tryNow(): void {
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
    this.grant(attempt.value);
    if (attempt.remaining) site?.hintFor(attempt.remaining);
  }

  protected override late(): void {
    // Over the connection of replicas a try can be behind its undo. A call that goes on gets what this try took by its next.
    if (this.#isUndone && this.env.replicas) void this.undo();
  }

  protected override withdraw(): Promise<unknown> | undefined {
    const undone = super.withdraw();
    this.#isUndone ||= undone !== undefined;
    return undone;
  }
}
