/** What parties of both sides contend for under one name: one shuts it, and others wait until it is opened. */
import { type LockKind, NEVER } from "../calls.js";
import type { Party } from "../party.js";

/** Gives back, opens or leaves. */
export type End = () => Promise<unknown>;

export interface Contest {
  readonly kind: string;
  /** The Redisson that has it; default any. */
  readonly since?: string;
  /** Resolves when no other party can enter. Without a lease the watchdog renews; Java's permits never end. */
  shut(party: Party, name: string, lease?: number): Promise<End>;
  /** Waits until it can enter. */
  waits(party: Party, name: string): Promise<End>;
  /** The same for some time only, or not at all; null if it could not enter. */
  tries(party: Party, name: string, wait?: number): Promise<End | null>;
  /** What the party sees of it. */
  seen(party: Party, name: string): Promise<unknown>;
  readonly whenShut: unknown;
  readonly whenOpen: unknown;
  /** Whether all who wait enter together. */
  readonly shared?: boolean;
  /** Whether a lease ends it. */
  readonly leased: boolean;
  /** Opens it by force, from one of the two sides of a read-write lock. */
  force?(party: Party, name: string, side: "shuts" | "waits"): Promise<boolean>;
}

type Lock = ReturnType<Party["lock"]>;
type LockOf = (party: Party, name: string) => Lock;
type Kept = "whenShut" | "whenOpen" | "leased" | "shut" | "waits" | "tries" | "seen";

async function take(lock: Lock, lease?: number): Promise<End> {
  await lock.lock(lease);
  return () => lock.unlock();
}

/** `looks`: the lock that says whether it is shut. */
function exclusion(shuts: LockOf, waits: LockOf, looks: LockOf = shuts): Pick<Contest, Kept> {
  return {
    shut: (party, name, lease) => take(shuts(party, name), lease),
    waits: (party, name) => take(waits(party, name)),
    tries: async (party, name, wait) => {
      const lock = waits(party, name);
      return (await lock.tryLock(wait)) ? () => lock.unlock() : null;
    },
    seen: async (party, name) => {
      const lock = looks(party, name);
      return [await lock.isLocked(), (await lock.remainTimeToLive()) > 0, await lock.getHoldCount()];
    },
    whenShut: [true, true, 0],
    whenOpen: [false, false, 0],
    leased: true,
  };
}

function locks(kind: string, shuts: LockKind, waits: LockKind = shuts): Contest {
  return {
    kind,
    ...exclusion(
      (party, name) => party.lock(shuts, name),
      (party, name) => party.lock(waits, name),
    ),
    shared: waits === "read",
    force: (party, name, side) => party.lock(side === "shuts" ? shuts : waits, name).forceUnlock(),
  };
}

const group: LockOf = (party, name) => party.multiLock(name, `${name}-b`);
const first: LockOf = (party, name) => party.lock("lock", name);
const last: LockOf = (party, name) => party.lock("lock", `${name}-b`);
const nonReentrant: LockOf = (party, name) => party.lock("nonReentrant", name);

const semaphore: Contest = {
  kind: "semaphore",
  shut: async (party, name) => {
    await party.semaphore(name).trySetPermits(1);
    return semaphore.waits(party, name);
  },
  waits: async (party, name) => {
    await party.semaphore(name).acquire();
    return () => party.semaphore(name).release();
  },
  tries: async (party, name, wait) => {
    return (await party.semaphore(name).tryAcquire(1, wait)) ? () => party.semaphore(name).release() : null;
  },
  seen: (party, name) => party.semaphore(name).availablePermits(),
  whenShut: 0,
  whenOpen: 1,
  leased: false,
};

const permits: Contest = {
  kind: "permits",
  shut: async (party, name, lease) => {
    await party.permits(name).trySetPermits(1);
    const id = await party.permits(name).acquire(lease);
    return () => party.permits(name).release(id);
  },
  waits: (party, name) => permits.shut(party, name, NEVER),
  tries: async (party, name, wait) => {
    const id = await party.permits(name).tryAcquire(wait, NEVER);
    return id === null ? null : () => party.permits(name).release(id);
  },
  seen: async (party, name) => [
    await party.permits(name).availablePermits(),
    await party.permits(name).acquiredPermits(),
  ],
  whenShut: [0, 1],
  whenOpen: [1, 0],
  leased: true,
};

const latch: Contest = {
  kind: "latch",
  shut: async (party, name) => {
    await party.latch(name).trySetCount(1);
    return () => party.latch(name).countDown();
  },
  waits: async (party, name) => {
    await party.latch(name).await();
    return async () => {};
  },
  tries: async (party, name, wait) => ((await party.latch(name).await(wait ?? 0)) ? async () => {} : null),
  seen: (party, name) => party.latch(name).getCount(),
  whenShut: 1,
  whenOpen: 0,
  shared: true,
  leased: false,
};

export const CONTESTS: readonly Contest[] = [
  locks("lock", "lock"),
  locks("fair lock", "fair"),
  locks("fenced lock", "fenced"),
  locks("writer before readers", "write", "read"),
  locks("reader before writers", "read", "write"),
  locks("writer before writers", "write"),
  { kind: "non-reentrant lock", since: "4.4.0", ...exclusion(nonReentrant, nonReentrant) },
  { kind: "group before a member", ...exclusion(group, first, first) },
  { kind: "member before a group", ...exclusion(last, group, last) },
  semaphore,
  permits,
  latch,
];

/** A name for each of the ways in which people and Redisson's rules may shape one. */
export const SHAPES: readonly ((unique: string) => string)[] = [
  (unique) => unique,
  (unique) => `with space ${unique}`,
  (unique) => `a:b:${unique}`,
  (unique) => `{tag-${unique}}rest`,
  (unique) => `pre{${unique}}`,
  (unique) => `x{a}y{${unique}}`,
  (unique) => `open{${unique}`,
  (unique) => `{}${unique}`,
  (unique) => `ключ-${unique}`,
  (unique) => `鍵🔑${unique}`,
  (unique) => `quote"and'${unique}`,
  (unique) => `with%percent/and\\${unique}`,
];
