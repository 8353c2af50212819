/** The semaphore whose permits have an id and a lease each: permits of a process that died come back by themselves. */
import { checkFunction, checkInteger, checkOptions, checkWait } from "../base/arguments.js";
import { elapsed, instant } from "../base/clock.js";
import { LockLostError, LockNotOwnerError } from "../base/errors.js";
import { callTombstone } from "../base/names.js";
import { permitsSet, permitsUpdate } from "../scripts/generated.js";
import { permitKey } from "./live-permits.js";
import { checkNumber, MARKER_TTL, type SharedNumber } from "./number.js";
import { checkId, endPermit, type KeptPermit, keysOf, type Permit, TakePermit } from "./permit.js";
import type { SignalOptions } from "./semaphore.js";

/** Options of {@link PermitExpirableSemaphore.acquire}. */
export interface PermitOptions extends SignalOptions {
  /** Milliseconds, a whole number; if absent the watchdog keeps the permit until it is given back. */
  lease?: number | undefined;
}

/** Options of {@link PermitExpirableSemaphore.run}. */
export interface PermitRunOptions extends PermitOptions {
  /** Milliseconds; without limit if absent. */
  wait?: number | undefined;
}

function isOne(reply: unknown): boolean {
  return Number(reply) === 1;
}

/**
 * Permits that any number of processes share, each with a lease by the server's clock. Any process may give back an id.
 * A permit that is handed to another process should have a lease: otherwise the watchdog of the process that took it
 * keeps it.
 * @example
 * const seats = client.getPermitExpirableSemaphore("seats");
 * await seats.trySetPermits(4);
 * await seats.run(() => sell("42"), { wait: 1_000 });
 */
export class PermitExpirableSemaphore {
  /** The name as it was asked for: without the prefix. */
  readonly name: string;
  readonly #number: SharedNumber;

  /** Made by `LockClient.getPermitExpirableSemaphore`. @internal */
  constructor(number: SharedNumber) {
    checkNumber(number, "getPermitExpirableSemaphore");
    this.name = number.lockName;
    this.#number = number;
  }

  /**
   * Sets the number of permits, unless that was done before. Resolves with whether this call set it; to change a number
   * that is set use {@link setPermits} or {@link addPermits}.
   * @throws as {@link addPermits}
   */
  async trySetPermits(permits: number): Promise<boolean> {
    return this.#number.trySet(checkInteger(permits, "permits", 0));
  }

  /**
   * Takes a permit; waits until there is one. Resolves with its id, 32 hex digits.
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, REPLICAS, CLIENT_CLOSED, LOCK_LOST (the grant came too late);
   * `signal.reason`
   */
  async acquire(options?: PermitOptions): Promise<string> {
    const { lease, signal } = checkOptions(options, ["lease", "signal"], "acquire");
    const permit = await new TakePermit(this.#number, lease, Number.POSITIVE_INFINITY, signal).start();
    return (permit as Permit).id;
  }

  /**
   * Takes a permit if there is one within `wait` milliseconds, at once if absent or 0. Resolves with its id, or null.
   * `lease` is its lease in milliseconds; if absent, the watchdog keeps it.
   * @throws as {@link acquire}
   */
  async tryAcquire(wait?: number, lease?: number, options?: SignalOptions): Promise<string | null> {
    const { signal } = checkOptions(options, ["signal"], "tryAcquire");
    const permit = await new TakePermit(this.#number, lease, checkWait(wait) ?? 0, signal).start();
    return permit?.id ?? null;
  }

  /**
   * Takes a permit, runs fn with its id and gives it back, which fn does not do. It waits without limit unless `wait` is given.
   * What fn throws always wins. If only the release gets no answer, it goes on in the background, and `error` is emitted.
   * @throws as {@link acquire}; WAIT_TIMEOUT if there was none within `wait`; LOCK_LOST if the permit ended before fn
   */
  async run<T>(fn: (id: string) => T | Promise<T>, options?: PermitRunOptions): Promise<T> {
    checkFunction(fn, "fn");
    const { wait, lease, signal } = checkOptions(options, ["wait", "lease", "signal"], "run");
    const limit = checkWait(wait) ?? Number.POSITIVE_INFINITY;
    const taking = new TakePermit(this.#number, lease, limit, signal).start();
    return this.#number.run(
      taking,
      ({ id }) => fn(id),
      (permit) => this.#end(permit),
    );
  }

  /**
   * Gives a permit back. Without an answer the release goes on in the background, and a further call asks for it again.
   * @throws NOT_OWNER if the permit is unknown, or its lease has ended; UNAVAILABLE without an answer; UNSUPPORTED,
   * WRONG_DATA, CLIENT_CLOSED
   */
  async release(id: string): Promise<void> {
    if (await this.tryRelease(id)) return;
    throw new LockNotOwnerError(
      this.name,
      `semaphore "${this.name}": no such permit, or its lease has ended; give it a longer lease, or none`,
    );
  }

  /**
   * As {@link release}; resolves with false instead of rejecting NOT_OWNER.
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, CLIENT_CLOSED
   */
  async tryRelease(id: string): Promise<boolean> {
    const known = checkId(id);
    const number = this.#number;
    if (known === undefined) {
      number.assertNotEnded();
      return false;
    }
    const { permits, runner } = number.env;
    const returning = permits.returning.get(permitKey(number, known));
    if (returning) return runner.withTimeout(this.name, returning);
    const kept = permits.kept(number, known);
    kept?.end();
    return this.#giveBack(known, kept);
  }

  /**
   * Sets the lease of a permit to `lease` milliseconds from now. From then on the watchdog leaves it alone. Resolves with
   * whether there is such a permit. One that the watchdog keeps is kept until the answer is there.
   * @throws UNAVAILABLE without an answer: whether the lease is set is not known then, so call again; UNSUPPORTED,
   * WRONG_DATA, CLIENT_CLOSED
   */
  async updateLeaseTime(id: string, lease: number): Promise<boolean> {
    const known = checkId(id);
    const ms = checkInteger(lease, "lease", 1);
    const number = this.#number;
    number.env.assertOpen(this.name);
    if (known === undefined) return false;
    const { keys, call } = this.#setting(known);
    const update = () => permitsUpdate.with(keys, [known, ms, call, MARKER_TTL, number.publish]);
    const kept = number.env.permits.kept(number, known);
    const set = await number.ask(update, isOne);
    if (!kept) return set;
    if (!set) kept.gone();
    else if (!kept.lost) kept.end();
    // One that was lost while there was no answer is on its way back.
    return set && !kept.lost;
  }

  /**
   * How many permits are free; below 0 while more are out than there are to be.
   * @throws UNAVAILABLE, UNSUPPORTED, WRONG_DATA, CLIENT_CLOSED
   */
  async availablePermits(): Promise<number> {
    return (await this.#number.inspect()).permits;
  }

  /**
   * How many permits are out.
   * @throws as {@link availablePermits}
   */
  async acquiredPermits(): Promise<number> {
    return (await this.#number.inspect()).out;
  }

  /**
   * How many permits there are, free and out.
   * @throws as {@link availablePermits}
   */
  async getPermits(): Promise<number> {
    const { permits, out } = await this.#number.inspect();
    return permits + out;
  }

  /**
   * Sets how many permits there are, free and out.
   * @throws as {@link updateLeaseTime}
   */
  async setPermits(permits: number): Promise<void> {
    const count = checkInteger(permits, "permits", 0);
    const number = this.#number;
    const { keys, call } = this.#setting("limit");
    await number.ask(() => permitsSet.with(keys, [count, call, MARKER_TTL, number.publish]), isOne);
  }

  /**
   * Makes more permits.
   * @throws UNAVAILABLE if Redis gives no answer in time; the call goes on in the background, so do not repeat it;
   * UNSUPPORTED, WRONG_DATA, CLIENT_CLOSED
   */
  async addPermits(permits: number): Promise<void> {
    const count = checkInteger(permits, "permits", 1);
    this.#number.env.assertOpen(this.name);
    // Redisson's message is how many are new; of a plain semaphore it is how many are free.
    await this.#number.add(count, String(count));
  }

  /**
   * Calls of one client that set the same share a marker. It has the number of the last of them that was done, so that one
   * that comes late changes nothing.
   */
  #setting(what: string) {
    const number = this.#number;
    const { env, key } = number;
    const keys = keysOf(number, callTombstone(key, `${env.clientId}:${what}`));
    return { keys, call: env.mint() };
  }

  /** Gives back the permit of a run; resolves with its loss, if it was lost. */
  async #end(permit: Permit): Promise<LockLostError | undefined> {
    const number = this.#number;
    const wasOut = await this.tryRelease(permit.id).catch((cause: unknown) => {
      number.emit("error", { permitId: permit.id, cause });
      return true;
    });
    if (permit.lost || wasOut) return permit.lost;
    return new LockLostError(this.name, "expired", number.env.clock.wall());
  }

  /** Resolves with whether the permit was out. Its event comes when Redis has answered, however late. */
  #giveBack(id: string, kept: KeptPermit | undefined): Promise<boolean> {
    const number = this.#number;
    const { clock } = number.env;
    const begun = instant(clock);
    const answered = (word: number) => {
      // So late, an earlier run of this command may have given it back, and its tombstone may have lapsed since.
      const out = word === 1 || elapsed(begun, instant(clock)) > MARKER_TTL;
      const about = kept ? { permitId: id, held: kept.held } : { permitId: id };
      if (out) number.emit("released", about);
      else if (kept) number.emit("lost", { ...about, reason: "expired" });
      return out;
    };
    return number.goOn(() => {
      const work = endPermit(number, id).then(answered);
      number.env.permits.returns(number, id, work);
      return work;
    });
  }
}
