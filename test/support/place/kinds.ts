/**
 * The kinds of locks that keep the contract. Each row of the contract suite runs on all of them, or on the kinds that it
 * names. A new kind joins by one entry of KINDS. What a kind says about the server is only for rows that look or act there.
 */
import { type Lock, type LockClient, type LockKind, MultiLock, RedLock } from "../../../src/index.js";

/** The client of one process for each server of the place. */
export type Clients = readonly [LockClient, ...LockClient[]];

export interface Kind {
  /** The name in the titles of tests. */
  readonly name: string;
  /** The name in events. */
  readonly kind: LockKind;
  /** Makes a lock. A lock of several members gives its first member this very name, and rows look and act there. */
  make(clients: Clients, lockName: string): Lock;
  /** The number of member locks: each step sends that many commands, and each member has events of its own. */
  readonly members: number;
  /** The number of servers that a lock of this kind needs. */
  readonly servers: number;
  /** The kind by which another owner excludes this lock, and the other way round: for the read side, the write side. */
  readonly rival: Kind;
  /** Whether only one owner at a time can hold the lock. */
  readonly exclusive: boolean;
  /** Whether the server knows each waiter, so that each waiter must try once by itself. */
  readonly places: boolean;
  /** The lock's hash while only this owner holds it. */
  fields(ownerId: string, count: number): Record<string, string>;
}

type Details = Partial<Pick<Kind, "members" | "servers" | "rival" | "places" | "fields">>;

function kindOf(name: string, kind: LockKind, make: Kind["make"], details: Details = {}): Kind {
  const made: Kind = {
    name,
    kind,
    make,
    members: details.members ?? 1,
    servers: details.servers ?? 1,
    get rival() {
      return details.rival ?? made;
    },
    exclusive: details.rival === undefined,
    places: details.places ?? false,
    fields: details.fields ?? ((ownerId, count) => ({ [ownerId]: String(count) })),
  };
  return made;
}

export const PLAIN: Kind = kindOf("lock", "lock", ([client], name) => client.getLock(name));

export const FAIR: Kind = kindOf("fair lock", "fair", ([client], name) => client.getFairLock(name), {
  places: true,
});

export const FENCED: Kind = kindOf("fenced lock", "fenced", ([client], name) => client.getFencedLock(name));

export const WRITE: Kind = kindOf(
  "write side",
  "readwrite",
  ([client], name) => client.getReadWriteLock(name).writeLock(),
  { places: true, fields: (ownerId, count) => ({ mode: "write", [`${ownerId}:write`]: String(count) }) },
);

export const READ: Kind = kindOf(
  "read side",
  "readwrite",
  ([client], name) => client.getReadWriteLock(name).readLock(),
  { rival: WRITE, fields: (ownerId, count) => ({ mode: "read", [ownerId]: String(count) }) },
);

/** Two locks of one client. A group has the face of a lock, but is not of its class. */
export const MULTI: Kind = kindOf(
  "MultiLock",
  "multi",
  ([client], name) => new MultiLock(client.getLock(name), client.getLock(`${name}~`)) as unknown as Lock,
  { members: 2 },
);

/** The same name on three servers. */
export const RED: Kind = kindOf(
  "RedLock",
  "red",
  (clients, name) => new RedLock(...clients.map((client) => client.getLock(name))) as unknown as Lock,
  { members: 3, servers: 3 },
);

/** One lock on one server each. */
export const SINGLE: readonly Kind[] = [PLAIN, FAIR, FENCED, READ, WRITE];
export const GROUPS: readonly Kind[] = [MULTI, RED];
export const KINDS: readonly Kind[] = [...SINGLE, ...GROUPS];
/** The kinds that only one owner at a time can hold. */
export const EXCLUSIVE: readonly Kind[] = KINDS.filter(({ exclusive }) => exclusive);
