/** The semaphore: a number of permits, which have no owner and no lease. */
import { checkFunction, checkInteger, checkOptions, checkSignal, checkWait } from "../base/arguments.js";
import { LockLostError } from "../base/errors.js";
import { semaphoreAcquire, semaphoreUndo } from "../scripts/generated.js";
import type { ScriptCall } from "../scripts/script.js";
import { RunningPermits } from "./live-permits.js";
import { checkNumber, MARKER_TTL, type SharedNumber } from "./number.js";
import { type Attempt, Request, type RequestOptions } from "./request.js";

/** Options of calls that wait. */
export interface SignalOptions {
  /** Ends the wait at once, with `signal.reason`. */
  signal?: AbortSignal | undefined;
}

/** Options of {@link Semaphore.run}. */
export interface SemaphoreRunOptions extends SignalOptions {
  /** How many to take. Default 1. */
  permits?: number | undefined;
  /** Milliseconds that the wait may take; without limit if absent. */
  wait?: number | undefined;
}

/** Takes so many permits, or with 0 all that are free. Its tries count as one call, because they have one marker. */
class Take extends Request<number> {
  readonly #count: number;
  readonly #marker: string;

  constructor(number: SharedNumber, count: number, options: RequestOptions<number>) {
    super(number, options);
    this.#count = count;
    this.#marker = number.marker();
  }

  override get permits(): number {
    return Math.max(1, this.#count);
  }

  protected override get attempt(): ScriptCall {
    return semaphoreAcquire.with([this.wanted.key, this.#marker], [this.#count, MARKER_TTL]);
  }

  protected override read(reply: unknown): Attempt<number> {
    const [word, free = 0, taken = 0] = (reply as unknown[]).map(Number);
    if (word !== 1) return { granted: false, ttl: -1, isUnset: word === 0 && free === 0 };
    return { granted: true, value: taken, remaining: free };
  }

  protected override undo(): Promise<unknown> {
    const { wanted: number } = this;
    const { key, channel, publish } = number;
    return number.undo(this.#marker, (marker) =>
      semaphoreUndo.with([key, channel, marker], [MARKER_TTL, publish]),
    );
  }
}

const SIGNAL: readonly string[] = ["signal"];
const RUN: readonly string[] = ["permits", "wait", "signal"];

/**
 * Permits that any number of processes share. A permit has no owner: any process may give it back. It has no lease
 * either: a process that dies keeps its permits for ever. Where that matters use the expirable kind.
 *
 * Not fair over all processes. Within one process calls are served in their order: small ones do not pass a large one.
 * @example
 * const lanes = client.getSemaphore("lanes");
 * await lanes.trySetPermits(4);
 * await lanes.run(() => sell("42"), { wait: 1_000 });
 */
export class Semaphore {
  /** The name as it was asked for: without the prefix. */
  readonly name: string;
  readonly #number: SharedNumber;

  /** Made by `LockClient.getSemaphore`. @internal */
  constructor(number: SharedNumber) {
    checkNumber(number, "getSemaphore");
    this.name = number.lockName;
    this.#number = number;
  }

  /**
   * Sets the number of permits, unless that was done before. Resolves with whether this call set it; to raise a number
   * that is set use {@link addPermits}.
   * @throws as {@link release}
   */
  async trySetPermits(permits: number): Promise<boolean> {
    return this.#number.trySet(checkInteger(permits, "permits", 0));
  }

  /**
   * Takes permits, 1 if absent; waits until there are enough.
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, REPLICAS, CLIENT_CLOSED; `signal.reason`
   */
  async acquire(permits: number = 1, options?: SignalOptions): Promise<void> {
    await this.#take("acquire", permits, Number.POSITIVE_INFINITY, options);
  }

  /**
   * Takes permits, 1 if absent, if there are enough within `wait` milliseconds (at once if absent or 0). Resolves with
   * whether there were.
   * @throws as {@link acquire}
   */
  async tryAcquire(permits: number = 1, wait: number = 0, options?: SignalOptions): Promise<boolean> {
    return this.#take("tryAcquire", permits, checkWait(wait) ?? 0, options);
  }

  /**
   * Gives permits back, 1 if absent. Nobody checks who took them. If Redis gives no answer in time, the call goes on in
   * the background, so do not repeat it.
   * @throws UNAVAILABLE without an answer in time; UNSUPPORTED, CLIENT_CLOSED; WRONG_DATA, also if there would be more
   * than Redis counts (2^63-1): none is given back then
   */
  async release(permits: number = 1): Promise<void> {
    await this.#number.giveBack(checkInteger(permits, "permits", 1));
  }

  /** Makes more permits. @throws as {@link release} */
  async addPermits(permits: number): Promise<void> {
    await this.#number.addPermits(permits);
  }

  /**
   * How many permits are free.
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, CLIENT_CLOSED
   */
  async availablePermits(): Promise<number> {
    return (await this.#number.inspect()).permits;
  }

  /** Takes all free permits; resolves with how many those were. @throws as {@link acquire} */
  async drainPermits(): Promise<number> {
    return (await new Take(this.#number, 0, { wait: 0, signal: undefined }).start()) ?? 0;
  }

  /**
   * Takes permits, runs fn and gives them back. It waits without limit unless `wait` is given. What fn throws always wins.
   * @throws as {@link acquire}; WAIT_TIMEOUT if there were not enough within `wait`; LOCK_LOST if the client was closed
   * meanwhile
   */
  async run<T>(fn: () => T | Promise<T>, options?: SemaphoreRunOptions): Promise<T> {
    checkFunction(fn, "fn");
    const { permits = 1, wait, signal } = checkOptions(options, RUN, "run");
    const limit = checkWait(wait) ?? Number.POSITIVE_INFINITY;
    const { clock } = this.#number.env;
    const begun = clock.mono();
    let running: RunningPermits | undefined;
    await this.#take("run", permits, limit, { signal } as SignalOptions, (count) => {
      running = new RunningPermits(this.#number, count);
    });
    if (!running) throw this.#number.tooFew("too few free permits", clock.mono() - begun);
    let result: T;
    try {
      result = await fn();
    } finally {
      await running.end();
    }
    const { lost } = running;
    if (lost) throw new LockLostError(this.name, lost.reason, lost.since, { value: result });
    return result;
  }

  async #take(
    where: string,
    permits: unknown,
    wait: number,
    options: SignalOptions | undefined,
    accept?: (count: number) => void,
  ): Promise<boolean> {
    const count = checkInteger(permits, "permits", 1);
    const signal = checkSignal(checkOptions(options, SIGNAL, where).signal);
    const number = this.#number;
    const told = (_taken: number, waited: number) => {
      accept?.(count);
      number.emit("acquired", { waited, nested: false });
    };
    return (await new Take(number, count, { wait, signal, accept: told }).start()) !== undefined;
  }
}
