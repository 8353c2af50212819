/** An owner on either side with one interface, so that a case is written once and runs in both directions. */
import { type Hold, isLockError, type Lock, type LockClient, MultiLock } from "../../src/index.js";
import { type Watched, watch } from "../support/outcome.js";
import { until } from "../support/until.js";
import {
  argumentsOf,
  JavaError,
  type LatchCalls,
  type LockCalls,
  type LockKind,
  type PermitsCalls,
  type SemaphoreCalls,
  type Subject,
} from "./calls.js";

export type Side = "Java" | "Node";

/** The side that acts, and the side that sees it. */
export const DIRECTIONS: readonly (readonly [one: Side, other: Side])[] = [
  ["Java", "Node"],
  ["Node", "Java"],
];

export interface Party {
  readonly side: Side;
  /** The owner's name in Redis; in Node, that of its last hold. */
  readonly owner: string;
  lock(kind: LockKind, name: string): LockCalls;
  /** A group of plain locks. */
  multiLock(...names: string[]): LockCalls;
  semaphore(name: string): SemaphoreCalls;
  permits(name: string): PermitsCalls;
  latch(name: string): LatchCalls;
  /** Makes a call, and resolves when it waits: from then on only a message or a timer can end it. */
  parked<T>(call: () => Promise<T>): Promise<Watched<T>>;
  /** Ends its waiting call from outside: interrupts the thread, or aborts the signal. */
  giveUp(): Promise<void>;
}

/** How many connections listen to each channel. */
export type Listeners = ReadonlyMap<string, number>;

/** A hold that an owner believes to have. */
export interface Held {
  /** The side of a read-write lock. */
  readonly side: "read" | "write" | undefined;
  readonly hold: Hold;
  /** The end in epoch ms; undefined if the watchdog keeps it. */
  readonly until: number | undefined;
}

/** One owner of a client of this library that makes one waiting call at a time. */
export class NodeParty implements Party {
  readonly side = "Node";
  readonly client: LockClient;
  owner = "";
  /** The holds, the innermost last; a lost one stays until its unlock. */
  holds: readonly Held[] = [];
  readonly #listeners: () => Promise<Listeners>;
  readonly #owner: ReturnType<LockClient["newOwner"]>;
  #abort = new AbortController();

  constructor(client: LockClient, listeners: () => Promise<Listeners>) {
    this.client = client;
    this.#listeners = listeners;
    this.#owner = client.newOwner();
  }

  lock(kind: LockKind, name: string): LockCalls {
    if (kind === "fair") return this.#calls(this.client.getFairLock(name));
    if (kind === "fenced") return this.#calls(this.client.getFencedLock(name));
    if (kind !== "read" && kind !== "write") return this.#calls(this.client.getLock(name));
    const both = this.client.getReadWriteLock(name);
    return this.#calls(kind === "read" ? both.readLock() : both.writeLock(), kind);
  }

  multiLock(...names: string[]): LockCalls {
    return this.#calls(new MultiLock(...names.map((name) => this.client.getLock(name))));
  }

  semaphore(name: string): SemaphoreCalls {
    return this.#bound("semaphore", this.client.getSemaphore(name), ["acquire", "tryAcquire"]);
  }

  permits(name: string): PermitsCalls {
    const permits = this.client.getPermitExpirableSemaphore(name);
    const acquire = (lease?: number) => permits.acquire({ lease, ...this.#signal });
    return { ...this.#bound<PermitsCalls>("permits", permits, ["tryAcquire"]), acquire };
  }

  latch(name: string): LatchCalls {
    return this.#bound("latch", this.client.getCountDownLatch(name), ["await"]);
  }

  /** The calls of the object; those that wait get the signal behind their arguments. */
  #bound<T>(subject: Subject, object: object, waiting: readonly string[]): T {
    const methods = object as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const calls = Object.entries(argumentsOf(subject)).map(([name, { length }]) => {
      const call = (...args: unknown[]) => {
        const given = Array.from({ length }, (_, i) => args[i]);
        return methods[name]?.(...given, ...(waiting.includes(name) ? [this.#signal] : []));
      };
      return [name, call];
    });
    return Object.fromEntries(calls) as T;
  }

  /** It waits if it was refused, its client has begun to listen, and it has asked once more since. */
  async parked<T>(call: () => Promise<T>): Promise<Watched<T>> {
    const before = await this.#listeners();
    const told = new Promise<string>((resolve) =>
      this.client.once("waiting", ({ lockName }) => resolve(lockName)),
    );
    const watched = watch(call());
    const over = () => watched.state !== "pending";
    const lockName = await Promise.race([
      told,
      watched.promise.then(
        () => "",
        () => "",
      ),
    ]);
    const members = lockName.split(",");
    await until("its client listens", async () => {
      const changed = [...(await this.#listeners())].filter(
        ([channel, count]) => count > (before.get(channel) ?? 0),
      );
      return over() || changed.some(([channel]) => members.some((name) => channel.includes(name)));
    });
    for (let trips = 0; trips < 2 && !over(); trips++)
      await this.client.inspect(members[0] ?? "", { kinds: "all" });
    if (over()) throw new Error("the call did not wait", { cause: watched.error });
    return watched;
  }

  async giveUp(): Promise<void> {
    this.#abort.abort(new Error("enough"));
    this.#abort = new AbortController();
  }

  get #signal() {
    return { signal: this.#abort.signal };
  }

  #calls(lock: Lock | MultiLock, side?: Held["side"]): LockCalls {
    const owner = this.#owner;
    const keep = (hold: Hold, lease: number | undefined): void => {
      this.owner = hold.ownerId;
      this.holds = [
        ...this.holds,
        { side, hold, until: lease === undefined ? undefined : Date.now() + lease },
      ];
    };
    return {
      lock: async (lease) => keep(await lock.lock({ owner, lease, ...this.#signal }), lease),
      tryLock: async (wait, lease) => {
        const hold = await lock.tryLock(wait, lease, { owner, ...this.#signal });
        if (hold) keep(hold, lease);
        return hold !== null;
      },
      unlock: () => {
        const last = this.holds
          .filter((held) => held.side === side && held.hold.lockName === lock.name)
          .at(-1);
        this.holds = this.holds.filter((held) => held !== last);
        return last ? last.hold.unlock() : lock.unlock({ owner });
      },
      forceUnlock: () => lock.forceUnlock(),
      isLocked: () => lock.isLocked(),
      getHoldCount: () => lock.getHoldCount({ owner }),
      remainTimeToLive: () => lock.remainTimeToLive(),
    };
  }
}

/** Whether something was not given back because its owner does not hold it (any more), on either side. */
export function saysNotOwner(error: unknown): boolean {
  if (error instanceof JavaError) return /not locked by current thread|Permit with id/.test(error.message);
  return isLockError(error, "NOT_OWNER") || isLockError(error, "LOCK_LOST");
}
