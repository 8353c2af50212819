/**
 * The kinds of locks that keep the contract: each test of `eachKind` (scene.ts) runs on all of them, and on a group of
 * locks. A new kind joins by one line of KINDS; what it says of the wire is only what tests need that look at the server
 * or act there.
 */
import { type Lock, type LockClient, type LockKind, MultiLock } from "../../src/index.js";

export interface Kind {
  /** In the titles of tests. */
  readonly name: string;
  /** As events name it. */
  readonly kind: LockKind;
  /** Of a lock of several members the first has this very name: that is where tests look and act. */
  make(client: LockClient, lockName: string): Lock;
  /** How many locks it is made of: each step is so many commands, and each member tells events of its own. */
  readonly members: number;
  /** What another owner must hold to keep this one out, and what this one keeps out: of the read side the write side. */
  readonly rival: Kind;
  /** Whether only one owner at a time can have it. */
  readonly exclusive: boolean;
  /** Whether the server knows each waiter, so that each has to ask for itself once. */
  readonly places: boolean;
  /** The lock's hash while this owner alone holds it. */
  fields(ownerId: string, count: number): Record<string, string>;
  /** The keys beside the hash while this owner alone holds it. */
  beside(lockName: string, ownerId: string, count: number): string[];
  /** Whether this key of a lock stays when nobody holds it. */
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

/** Two locks of one client as one. */
const GROUP = kindOf(
  "group of locks",
  "multi",
  (client, lockName) => {
    const group = new MultiLock(client.getLock(lockName), client.getLock(`${lockName}~`));
    // It has the same face, but is not the same class.
    return group as unknown as Lock;
  },
  { members: 2 },
);

/** For tests that do not depend on which commands are sent, and which keys and events are there. */
export const WITH_GROUP: readonly Kind[] = [...KINDS, GROUP];

/** For `describe.each`, with "%s" for the name. */
export const byName = (kinds: readonly Kind[] = KINDS): [name: string, kind: Kind][] =>
  kinds.map((kind) => [kind.name, kind]);

/** Those that only one owner at a time can have. */
export const EXCLUSIVE: readonly Kind[] = WITH_GROUP.filter(({ exclusive }) => exclusive);
