/**
 * The kinds of locks that keep the contract. A new kind joins by one
 * line of KINDS. What a kind says about the wire is only for tests that look at the
 * server or act there.
 */
import type { Lock, LockClient, LockKind } from "../../src/index.js";

export interface Kind {
  /** The name in the titles of tests. */
  readonly name: string;
  /** The name in events. */
  readonly kind: LockKind;
  /** Makes a lock. A lock of several members gives its first member this very name, and tests look and act there. */
  make(client: LockClient, lockName: string): Lock;
  /** The number of member locks: each step sends that many commands, and each member has events of its own. */
  readonly members: number;
  /**
   * The kind by which another owner excludes this lock, and the other way round: for the read side it is the write
   * side.
   */
  readonly rival: Kind;
  /** Whether only one owner at a time can hold the lock. */
  readonly exclusive: boolean;
  /** Whether the server knows each waiter, so that each waiter must try once by itself. */
  readonly places: boolean;
  /** The lock's hash while only this owner holds it. */
  fields(ownerId: string, count: number): Record<string, string>;
  /** The keys beside the hash while only this owner holds the lock. */
  beside(lockName: string, ownerId: string, count: number): string[];
  /** Whether this key of a lock stays after the last release. */
  keeps(key: string): boolean;
}

type Details = Partial<Pick<Kind, "members" | "rival" | "places" | "fields" | "beside" | "keeps">>;

function kindOf(name: string, kind: LockKind, make: Kind["make"], details: Details = {}): Kind {
  const made: Kind = {
    name,
    kind,
    make,
    members: details.members ?? 1,
    get rival() {
      return details.rival ?? made;
    },
    exclusive: details.rival === undefined,
    places: details.places ?? false,
    fields: details.fields ?? ((ownerId, count) => ({ [ownerId]: String(count) })),
    beside: details.beside ?? (() => []),
    keeps: details.keeps ?? (() => false),
  };
  return made;
}

const WRITE_SIDE = kindOf(
  "write side",
  "readwrite",
  (client, lockName) => client.getReadWriteLock(lockName).writeLock(),
  {
    places: true,
    fields: (ownerId, count) => ({ mode: "write", [`${ownerId}:write`]: String(count) }),
  },
);

const READ_SIDE = kindOf(
  "read side",
  "readwrite",
  (client, lockName) => client.getReadWriteLock(lockName).readLock(),
  {
    rival: WRITE_SIDE,
    fields: (ownerId, count) => ({ mode: "read", [ownerId]: String(count) }),
    beside: (lockName, ownerId, count) =>
      Array.from({ length: count }, (_, i) => `{${lockName}}:${ownerId}:rwlock_timeout:${i + 1}`),
  },
);

export const PLAIN: Kind = kindOf("lock", "lock", (client, lockName) => client.getLock(lockName));

export const KINDS: readonly Kind[] = [
  PLAIN,
  kindOf("fair lock", "fair", (client, lockName) => client.getFairLock(lockName), { places: true }),
  kindOf("fenced lock", "fenced", (client, lockName) => client.getFencedLock(lockName), {
    keeps: (key) => key.startsWith("redisson_lock_token:"),
  }),
  READ_SIDE,
  WRITE_SIDE,
];

/** For `describe.each`, with "%s" for the name. */
export const byName = (kinds: readonly Kind[] = KINDS): [name: string, kind: Kind][] =>
  kinds.map((kind) => [kind.name, kind]);
