/** The semaphore: a number of permits, which have no owner and no lease. */
import { checkFunction, checkInteger, checkOptions, checkWait } from "../base/arguments.js";
import { semaphoreAcquire, semaphoreUndo } from "../scripts/generated.js";
import type { ScriptCall } from "../scripts/script.js";
import { RunningPermits } from "./live-permits.js";
import { checkNumber, MARKER_TTL, type SharedNumber } from "./number.js";
import { type Attempt, Request } from "./request.js";

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
class Take<R> extends Request<R> {
  readonly #count: number;
  readonly #marker: string;
  readonly #as: (taken: number) => R;

  /** It resolves with what `as` makes of the number of permits. */
  constructor(number: SharedNumber, count: number, wait: number, signal: unknown, as: (taken: number) => R) {
    super(number, wait, signal);
    this.#count = count;
    this.#marker = number.marker();
    this.#as = as;
  }

  override get permits(): number {
    return Math.max(1, this.#count);
  }

  protected override get attempt(): ScriptCall {
    return semaphoreAcquire.with([this.wanted.key, this.#marker], [this.#count, MARKER_TTL]);
  }

  protected override read(reply: unknown): Attempt {
    const [word, free = 0, taken = 0] = (reply as unknown[]).map(Number);
    return { isGranted: word === 1, free, taken };
  }

  protected override accept({ taken = 0 }: Attempt): R {
    const { waited } = this;
    const got = this.#as(taken);
    if (this.#count > 0) this.wanted.emit("acquired", { waited, nested: false });
    return got;
  }

  /** How many it has taken. */
  protected override shown(result: R): number {
    return typeof result === "number" ? result : this.#count;
  }

  protected override undo(): Promise<void> {
    const { wanted: number } = this;
    const { key, channel } = number;
    return number.undo(this.#marker, (marker) =>
      number.untilAnswered(() => semaphoreUndo.with([key, channel, marker], [MARKER_TTL, number.publish])),
    );
  }
}

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
    const { signal } = checkOptions(options, ["signal"], "acquire");
    const count = checkInteger(permits, "permits", 1);
    await new Take(this.#number, count, Number.POSITIVE_INFINITY, signal, Number).start();
  }

  /**
   * Takes permits, 1 if absent, if there are enough within `wait` milliseconds (at once if absent or 0). Resolves with
   * whether there were.
   * @throws as {@link acquire}
   */
  async tryAcquire(permits: number = 1, wait: number = 0, options?: SignalOptions): Promise<boolean> {
    const { signal } = checkOptions(options, ["signal"], "tryAcquire");
    const count = checkInteger(permits, "permits", 1);
    return (await new Take(this.#number, count, checkWait(wait) ?? 0, signal, Number).start()) !== undefined;
  }

  /**
   * Gives permits back, 1 if absent. Nobody checks who took them. If Redis gives no answer in time, the call goes on in
   * the background, so do not repeat it.
   * @throws UNAVAILABLE without an answer in time; UNSUPPORTED, CLIENT_CLOSED; WRONG_DATA, also if there would be more
   * than Redis counts (2^63-1): none is given back then
   */
  async release(permits: number = 1): Promise<void> {
    const number = this.#number;
    await number.add(checkInteger(permits, "permits", 1), "", () => number.emit("released", {}));
  }

  /** Makes more permits. @throws as {@link release} */
  async addPermits(permits: number): Promise<void> {
    const count = checkInteger(permits, "permits", 1);
    this.#number.env.assertOpen(this.name);
    await this.#number.add(count, "");
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
    return (await new Take(this.#number, 0, 0, undefined, Number).start()) ?? 0;
  }

  /**
   * Takes permits, runs fn and gives them back. It waits without limit unless `wait` is given. What fn throws always wins.
   * @throws as {@link acquire}; WAIT_TIMEOUT if there were not enough within `wait`; LOCK_LOST if the client was closed
   * meanwhile
   */
  async run<T>(fn: () => T | Promise<T>, options?: SemaphoreRunOptions): Promise<T> {
    checkFunction(fn, "fn");
    const { permits = 1, wait, signal } = checkOptions(options, ["permits", "wait", "signal"], "run");
    const count = checkInteger(permits, "permits", 1);
    const limit = checkWait(wait) ?? Number.POSITIVE_INFINITY;
    const number = this.#number;
    const taking = new Take(number, count, limit, signal, () => new RunningPermits(number, count)).start();
    return number.run(
      taking,
      () => fn(),
      (running) => running.end(),
    );
  }
}
