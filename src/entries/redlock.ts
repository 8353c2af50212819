/**
 * The API of redlock 5 on the locks of this library. A resource is the name of a lock here. So processes that use
 * redlock itself and processes that use this module do not exclude each other.
 */
import { wallTime } from "../base/platform.js";
import { type Hold, isLockError, type LockError } from "../index.js";
import { checkDuration, checkResources } from "./redlock/arguments.js";
import { Emitter, type RedlockEvents } from "./redlock/emitter.js";
import {
  type Attempts,
  ExecutionError,
  type ExecutionResult,
  type ExecutionStats,
  type RedlockClient,
  ResourceLockedError,
} from "./redlock/errors.js";
import { Execution, type ExecutionParts, isPassing, onAll } from "./redlock/execution.js";
import { type Master, mastersOf, quitMaster } from "./redlock/masters.js";
import { checkSettings, type Settings, waitOf } from "./redlock/settings.js";
import { locksOf, takeAll } from "./redlock/take.js";
import { type RedlockAbortSignal, type Routine, useLock } from "./redlock/using.js";

export {
  type Attempts,
  ExecutionError,
  type ExecutionResult,
  type ExecutionStats,
  type RedlockAbortSignal,
  type RedlockClient,
  type RedlockEvents,
  ResourceLockedError,
  type Routine,
  type Settings,
};

/** The holds that a lock is made of. An extended lock shares them with the lock before. */
interface Held {
  readonly names: readonly string[];
  readonly holds: readonly Hold[];
  /** True once the lock is given back, or lost. */
  over: boolean;
}

/** Milliseconds by which the duration of {@link Redlock.using} has to be longer than the threshold. */
const LEAST_MARGIN = 100;

const HELD = new WeakMap<Lock, Held>();

/** Locked resources. Made by {@link Redlock.acquire} and {@link Redlock.extend}; a lock made by hand holds nothing. */
export class Lock {
  /** The Redlock that made the lock. */
  readonly redlock: Redlock;
  /** The resources as they were given. */
  readonly resources: string[];
  /** Tells this lock from others; here the `ownerId` of its first hold. */
  readonly value: string;
  /** The attempts of the call that made the lock. */
  readonly attempts: Attempts;
  /** Epoch milliseconds until which it is held; 0 once it is given back, or was replaced by an extended one. */
  expiration: number;

  constructor(redlock: Redlock, resources: string[], value: string, attempts: Attempts, expiration: number) {
    this.redlock = redlock;
    this.resources = resources;
    this.value = value;
    this.attempts = attempts;
    this.expiration = expiration;
  }

  /** See {@link Redlock.release}. */
  release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  /** See {@link Redlock.extend}. */
  extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration);
  }
}

/**
 * Locks over one or more independent Redis servers: of three or more a majority decides (Redlock), of two both. Emits
 * `error` for what ends no call: votes against, and failures in the background; unheard it throws nothing.
 * @example
 * await new Redlock([redis]).using(["stock:42"], 5_000, (signal) => sell("42", signal));
 */
export class Redlock extends Emitter {
  /** The clients as they were given. */
  readonly clients: Set<RedlockClient>;
  /** The settings of calls that have none of their own. */
  readonly settings: Settings;
  readonly #parts: ExecutionParts;
  /** What is held lapses: nothing can be given back any more. */
  #hasQuit = false;

  /**
   * `clients`: a connection for each independent server (a Sentinel or Cluster connection counts as one); open until
   * {@link quit}. For each one more is made to listen by, so make one Redlock for a process, not one for a call.
   * `scripts` have no effect, and the process emits a warning.
   * @throws Error without a client; TypeError, RangeError for wrong settings, for what is no ioredis connection, and for one with a `keyPrefix`
   */
  constructor(clients: Iterable<RedlockClient>, settings?: Partial<Settings>, scripts: object = {}) {
    super();
    this.on("error", () => {}); // Without a listener an `error` would end the process.
    if (typeof clients?.[Symbol.iterator] !== "function" || typeof clients === "string")
      throw new TypeError("redlock: it needs an array of clients, as in new Redlock([redis])");
    this.clients = new Set(clients);
    if (this.clients.size === 0) throw new Error("redlock: it needs at least one client");
    this.settings = checkSettings(settings);
    const options = { drift: this.settings.driftFactor };
    const masters = mastersOf(this.clients, options);
    this.#parts = { masters, tell: (error) => this.#tell(error) };
    for (const { client } of masters) client.on("error", ({ cause }) => this.#tell(cause));
    if (Object.keys(scripts).length === 0) return;
    process.emitWarning("redlock: scripts of your own have no effect in holdfast/redlock", {
      type: "HoldfastWarning",
      code: "HOLDFAST_REDLOCK_SCRIPTS",
    });
  }

  /** Ends the given connections. What is held then lapses by itself; calls that wait reject. Never rejects. */
  async quit(): Promise<void> {
    this.#hasQuit = true;
    await Promise.all(this.#parts.masters.map(quitMaster));
  }

  /**
   * Locks all resources for `duration` milliseconds (a whole number), or none. Each call is a new owner: it waits for what this process holds,
   * too. It is woken when a resource comes free; `retryCount`, `retryDelay` and `retryJitter` only say for how long it waits at most.
   * @throws ExecutionError if there was no quorum in time; TypeError, RangeError for wrong arguments
   */
  async acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock> {
    const own = checkSettings(settings, this.settings);
    const names = checkResources(resources);
    checkDuration(duration);
    const locks = locksOf(this.#parts.masters, names);
    const execution = new Execution(this.#parts, names, own);
    const holds = await execution.run(isPassing, (wait) => {
      const owner = (this.#parts.masters[0] as Master).client.newOwner();
      return takeAll(locks, { wait, lease: duration, owner });
    });
    if (holds) return this.#lockOf(resources, { names, holds, over: false }, duration, own, execution);
    execution.failed();
    throw execution.error(
      `${names.join(", ")} was still held by others after the ${waitOf(own)} ms of its settings`,
    );
  }

  /**
   * Gives the lock back, and sets its `expiration` to 0.
   * @throws ExecutionError if it was lost (`cause` LOCK_LOST) or given back before, after quit(), or if no quorum confirmed
   * it in time. In the last case the release goes on in the background, and you may call it again
   */
  async release(lock: Lock, settings?: Partial<Settings>): Promise<ExecutionResult> {
    const own = checkSettings(settings, this.settings);
    const held = heldBy(lock);
    lock.expiration = 0;
    const execution = new Execution(this.#parts, held?.names ?? lock.resources, own);
    if (!held || held.over || this.#hasQuit) {
      execution.notHeld();
      throw execution.error("the lock cannot be released: it is not held, or quit() was called");
    }
    const { holds } = held;
    const mayPass = (error: LockError) => isPassing(error) && error.code !== "LOCK_LOST";
    try {
      await execution.run(mayPass, () => onAll(holds, (hold) => hold.unlock()));
      held.over = true;
    } catch (error) {
      held.over = isLockError((error as Error).cause, "LOCK_LOST");
      throw error;
    }
    execution.succeeded(holds);
    return { attempts: execution.attempts };
  }

  /**
   * Resolves with a lock that replaces `existing` and expires `duration` milliseconds (a whole number) from now.
   * @throws ExecutionError if it has expired or was given back, or if no quorum extended it in time
   */
  async extend(existing: Lock, duration: number, settings?: Partial<Settings>): Promise<Lock> {
    return this.#extend(existing, duration, checkSettings(settings, this.settings), () => true);
  }

  /**
   * Runs the routine under a lock that is extended as long as it runs, and resolves with what it returns. Its signal aborts when the
   * lock is lost, because it could not be extended or otherwise; `signal.error` says why.
   * @throws what the routine throws, before all else; ExecutionError as {@link acquire} and {@link release}, and if the lock was lost
   */
  async using<T>(
    resources: string[],
    duration: number,
    settings: Partial<Settings>,
    routine: Routine<T>,
  ): Promise<T>;
  /** As above, with the settings of the constructor. */
  async using<T>(resources: string[], duration: number, routine: Routine<T>): Promise<T>;
  async using<T>(
    resources: string[],
    duration: number,
    settingsOrRoutine: Partial<Settings> | Routine<T>,
    optionalRoutine?: Routine<T>,
  ): Promise<T> {
    const isRoutine = typeof settingsOrRoutine === "function";
    const routine = isRoutine ? settingsOrRoutine : optionalRoutine;
    if (typeof routine !== "function") throw new TypeError("redlock: using() needs a routine");
    const own = checkSettings(isRoutine ? undefined : settingsOrRoutine, this.settings);
    const threshold = own.automaticExtensionThreshold;
    if (threshold > duration - LEAST_MARGIN) {
      throw new RangeError(
        `redlock: the duration (${duration}) must be at least ${LEAST_MARGIN} ms longer than automaticExtensionThreshold (${threshold})`,
      );
    }
    const lock = await this.acquire(resources, duration, own);
    return useLock({
      lock,
      signals: (HELD.get(lock) as Held).holds.map(({ signal }) => signal),
      settings: own,
      routine,
      // Tries for as long as the lock is held: without an extension it is lost soon enough.
      extend: (last, goesOn) => this.#extend(last, duration, { ...own, retryCount: -1 }, goesOn),
    });
  }

  async #extend(existing: Lock, duration: number, own: Settings, goesOn: () => boolean): Promise<Lock> {
    const held = heldBy(existing);
    checkDuration(duration);
    const execution = new Execution(this.#parts, existing.resources, own);
    if (!held || held.over || existing.expiration < wallTime()) {
      const isOld = held && !held.over && existing.expiration === 0;
      const why = isOld ? "use the Lock that its extend() resolved with" : "it has expired or was given back";
      throw execution.error(`the lock cannot be extended: ${why}`);
    }
    const { holds } = held;
    const mayPass = (error: LockError) => isPassing(error) && goesOn() && holds.every(({ isHeld }) => isHeld);
    await execution.run(mayPass, () => onAll(holds, (hold) => hold.extend(duration)));
    existing.expiration = 0;
    return this.#lockOf(existing.resources, held, duration, own, execution);
  }

  #lockOf(resources: string[], held: Held, duration: number, own: Settings, execution: Execution): Lock {
    const { holds } = held;
    execution.succeeded(holds);
    // The client has taken its own share off `remaining`.
    const further = Math.max(0, own.driftFactor - this.settings.driftFactor) * duration;
    const remaining = Math.min(...holds.map((hold) => hold.remaining)) - further;
    const value = (holds[0] as Hold).ownerId;
    const lock = new Lock(this, resources, value, execution.attempts, Math.floor(wallTime() + remaining));
    HELD.set(lock, held);
    return lock;
  }

  /** A listener that throws disturbs no lock. */
  #tell(error: unknown): void {
    try {
      this.emit("error", error);
    } catch {}
  }
}

export default Redlock;

function heldBy(lock: unknown): Held | undefined {
  if (lock instanceof Lock) return HELD.get(lock);
  throw new TypeError("redlock: it takes a Lock that acquire() or extend() has resolved with");
}
