/** One call that waits for a number in Redis: free permits, or the opening of a latch. */
import { checkSignal } from "../base/arguments.js";
import { callChannel, isHeard, traceCall } from "../base/channels.js";
import type { PlainCommand } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import { Waiter } from "../waiting/waiter.js";
import type { SharedNumber } from "./number.js";

/** The answer to a try. */
export interface Attempt {
  readonly isGranted: boolean;
  /** How much it took. */
  readonly taken?: number;
  /** How much is left for other calls. */
  readonly free?: number;
  /** In how many milliseconds some may be free without a message; -1 if that is not known. */
  readonly ttl?: number;
}

/** `R`: what the call resolves with, or with undefined if it is refused and its time is up. */
export abstract class Request<R> extends Waiter<SharedNumber, Attempt, R | undefined> {
  #isGivenUp = false;

  constructor(number: SharedNumber, wait: number, signal: unknown) {
    super(number, { wait, signal: checkSignal(signal), begun: number.env.clock.mono() });
  }

  /** What a try sends. */
  protected abstract get attempt(): ScriptCall;

  /** @throws LOCK_LOST if a grant came too late */
  protected abstract read(reply: unknown): Attempt;

  /** It is granted: what the call has of that is known, and told, before it resolves. */
  protected abstract accept(attempt: Attempt): R;

  override async start(): Promise<R | undefined> {
    const { env, lockName, asked } = this;
    env.assertOpen(lockName);
    if (asked.signal?.aborted) throw asked.signal.reason;
    if (!isHeard(callChannel)) return super.start();
    const context = { clientId: env.clientId, lockName, kind: this.wanted.kind };
    let result: R | undefined;
    const call = async () => {
      result = await super.start();
      return result && this.shown(result);
    };
    await traceCall(context, asked, call);
    return result;
  }

  /** What subscribers of the channel see of its result. */
  protected shown(result: R): unknown {
    return result;
  }

  protected override outcome(attempt: Attempt | undefined): R | undefined {
    return attempt && this.accept(attempt);
  }

  override step(): void {
    this.env.sites.enter(this);
  }

  override tryNow(): void {
    this.sendTry();
  }

  protected override isGrant(reply: unknown): boolean {
    return this.read(reply).isGranted;
  }

  protected override request(): ScriptCall | PlainCommand {
    return this.try(this.attempt);
  }

  protected override answered(reply: unknown): void {
    const attempt = this.read(reply);
    const { isGranted, free = 0, ttl = -1 } = attempt;
    if (!isGranted) return this.refuse(ttl);
    const { site } = this;
    this.grant(attempt);
    if (free > 0) site?.hintFor(free);
  }

  protected override ended(taken: boolean): void {
    this.#isGivenUp = !taken;
  }

  protected override late(): void {
    // Over the connection of replicas a try can be behind its undo. A call that goes on gets what this try took by its next.
    if (this.#isGivenUp && this.env.replicas) void this.undo();
  }
}
