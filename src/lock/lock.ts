/** One lock: each of its calls is one {@link Call}. The kind knows how each step looks on the wire. */
import { tellCaller } from "../base/errors.js";
import { writerOf } from "../base/names.js";
import { quietly } from "../base/work.js";
import type { Kind, SideState } from "../kinds/kind.js";
import { Call } from "./call.js";
import { LockFace } from "./face.js";
import { type FencedHold, type Hold, viewOf } from "./hold.js";
import { type Asked, namedOwner, type OwnerOptions } from "./options.js";

/** A lock tells its kind by this method, so that another copy of the library in the process finds it too. */
const KIND = Symbol.for("holdfast.kind");

/** The kind of a lock; undefined for anything else. */
export function kindOf(lock: unknown): Kind | undefined {
  if (typeof lock !== "object" || lock === null) return undefined;
  return (lock as { [KIND]?: () => Kind })[KIND]?.();
}

/**
 * A reentrant lock, not fair. The lock is its client and name, not this object. `H`: what its holds are.
 * @example
 * const hold = await client.getLock("stock:42").tryLock(500, 10_000);
 * if (hold === null) throw new Error("somebody else had it for half a second");
 * try {
 *   await sell("42");
 * } finally {
 *   await hold.unlock();
 * }
 */
export class Lock<H extends Hold = Hold> extends LockFace<H> {
  readonly #kind: Kind;

  static {
    // Not declared as a member, so that it is not part of the public type; no getter, which a print of the lock would read.
    Object.defineProperty(Lock.prototype, KIND, {
      value(this: Lock) {
        return this.#kind;
      },
    });
  }

  /** Locks are made by a LockClient. @internal */
  constructor(kind: Kind) {
    checkKind(kind);
    super(kind);
    this.#kind = kind;
  }

  override async forceUnlock(): Promise<boolean> {
    this.#kind.env.assertOpen(this.name);
    return force(this.#kind).catch(tellCaller);
  }

  override currentHold(): H | null {
    const { lockKey, traits } = this.#kind;
    const hold = this.currentOwner()?.grantOf(lockKey)?.innermost(traits.side);
    hold?.keep();
    return hold ? (viewOf(hold) as H) : null;
  }

  override async isLocked(): Promise<boolean> {
    return (await this.#state("")).held;
  }

  override async isHeldByCurrentOwner(options?: OwnerOptions): Promise<boolean> {
    return (await this.#count(options, "isHeldByCurrentOwner")) > 0;
  }

  override async getHoldCount(options?: OwnerOptions): Promise<number> {
    return this.#count(options, "getHoldCount");
  }

  override async remainTimeToLive(): Promise<number> {
    return (await this.#state("")).ttl;
  }

  /** @internal */
  protected override acquire(asked: Asked): Promise<H | null> {
    this.#kind.env.assertOpen(this.name);
    return new Call(this.#kind, asked).start() as Promise<H | null>;
  }

  /** `where`: the call whose options these are. */
  async #count(options: OwnerOptions | undefined, where: string): Promise<number> {
    const owner = namedOwner(options, where) ?? this.currentOwner();
    const grant = owner?.grantOf(this.#kind.lockKey);
    this.#kind.env.assertOpen(this.name);
    const count = grant?.holds.filter((hold) => hold.side === this.#kind.traits.side).length ?? 0;
    if (!grant || count === 0) return 0;
    return (await this.#state(grant.wireId)).count > 0 ? count : 0;
  }

  async #state(wireId: string): Promise<SideState> {
    const kind = this.#kind;
    kind.env.assertOpen(this.name);
    const read = (reply: unknown) => kind.readState(reply, wireId);
    return kind.env.runner.call(kind.lockName, () => kind.state(), read).catch(tellCaller);
  }
}

/** An END by somebody else, which tells the holders of this client at once. Resolves with whether the lock was held. */
async function force(kind: Kind): Promise<boolean> {
  const { env, key, lockName } = kind;
  const { runner } = env;
  // A command of a holder may report the loss before the answer to the force is here, and must know the cause.
  const holders = env.live.all().filter((grant) => grant.kind.key === key);
  for (const grant of holders) grant.forcedBy++;
  // Who takes what it has forced in this tick must not be overtaken by waiters that the force wakes.
  runner.sender.gather();
  try {
    const callId = env.wireId();
    const read = (reply: unknown) => Array.from(reply as unknown[], String);
    const ended = await runner.call(lockName, () => kind.force(callId), read);
    const wireIds = new Set(ended.map((field) => writerOf(field) ?? field));
    for (const grant of env.live.all()) {
      if (grant.kind.key === key && wireIds.has(grant.wireId)) grant.lose("forced");
    }
    // A holder that was giving it back meanwhile learns it by the answer to that.
    const ending = holders.filter(({ state, wireId }) => state === "ending" && wireIds.has(wireId));
    await Promise.all(ending.map((grant) => quietly(grant.end?.again() ?? Promise.resolve())));
    return ended.length > 0;
  } finally {
    // A command that was sent before may be answered a moment later.
    void runner.idle().then(() => {
      for (const grant of holders) grant.forcedBy--;
    });
  }
}

/** @throws TypeError for anything but what a LockClient passes */
function checkKind(kind: Partial<Kind> | undefined): void {
  if (kind?.env?.live) return;
  throw new TypeError("create a lock by client.getLock(name) or the like, not by new");
}

/**
 * A reentrant lock that is granted first come first served over all processes. The order is that in which the first
 * tries reach the server, whose clock alone counts. The lock skips a dead waiter after three times `pollCap`.
 * @example
 * const turn = client.getFairLock("printer");
 * await turn.run(() => sell("42"), { wait: 60_000 });
 */
export class FairLock extends Lock {}

/**
 * A reentrant lock whose holds carry a fencing token.
 * @example
 * await client.getFencedLock("invoice").run((hold) => sell("42", { newerThan: hold.token }));
 */
export class FencedLock extends Lock<FencedHold> {}

/** Options of `LockClient.getReadWriteLock`. */
export interface ReadWriteLockOptions {
  /** Whether waiting writers go before readers that come later, so that readers cannot starve them. Default true. */
  preferWriters?: boolean | undefined;
}

/**
 * Many readers or one writer; both sides are reentrant. The writer may take the read side as well. If it then gives back
 * the write side first, it goes on as a reader without a gap. The reverse is refused: an owner that only reads and asks
 * for the write side gets UPGRADE_REFUSED. Each reader has a lease of its own, so a dead reader's hold ends by itself.
 * @example
 * const document = client.getReadWriteLock("document:7");
 * await document.readLock().run(() => sell("7"));
 * await document.writeLock().run(() => sell("7"), { wait: 5_000 });
 */
export class ReadWriteLock {
  /** The name as the user gave it: without the prefix. */
  readonly name: string;
  readonly #read: Lock;
  readonly #write: Lock;

  /** Locks are made by a LockClient. @internal */
  constructor(read: Kind, write: Kind) {
    this.#read = new Lock(read);
    this.#write = new Lock(write);
    this.name = this.#read.name;
  }

  /** The side that any number of owners may hold at a time. */
  readLock(): Lock {
    return this.#read;
  }

  /** The side that one owner may hold, while no other owner holds either side. */
  writeLock(): Lock {
    return this.#write;
  }
}
