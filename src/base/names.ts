/**
 * Makes the names of a lock's keys and channels on the wire, which are Redisson's, from the lock's name. Keys that only
 * this library writes start with `holdfast_`, in the same hash slot.
 */
import { checkName } from "./arguments.js";

type NameOf = (name: string) => string;

/** `P:N`, braced so that it shares the slot of `N`. */
function prefixed(prefix: string): NameOf {
  return (name) => (name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`);
}

/** `N:S`, braced likewise. */
function suffixed(name: string, suffix: string): string {
  return name.includes("{") ? `${name}:${suffix}` : `{${name}}:${suffix}`;
}

/**
 * The channel where releases of a plain or fenced lock are announced. With a waiter's name behind it, it is the channel
 * where that waiter of a fair lock is woken.
 */
export const lockChannel: NameOf = prefixed("redisson_lock__channel");

/** The channel where releases of both sides of a read-write lock are announced. */
export const readWriteChannel: NameOf = prefixed("redisson_rwlock");

/** The counter of fencing tokens. */
export const tokenCounter: NameOf = prefixed("redisson_lock_token");

/** The waiters of a fair lock in their order. */
export const fairQueue: NameOf = prefixed("redisson_lock_queue");

/** The times at which the tickets in that queue lapse. */
export const fairTimeouts: NameOf = prefixed("redisson_lock_timeout");

/** The times until which this library's waiters in that queue count as alive. */
export const fairAlive: NameOf = prefixed("holdfast_alive");

/** The times until which this library's waiting writers count as alive. */
export const waitingWriters: NameOf = prefixed("holdfast_writers");

/** The channel where free permits of a semaphore are announced. */
export const semaphoreChannel: NameOf = prefixed("redisson_sc");

/** The times at which the leases of the permits that are out end. */
export function permitLeases(name: string): string {
  return suffixed(name, "timeout");
}

/**
 * The channel where the opening of a latch is announced. Redisson puts braces around every name. If the name has braces
 * already, the channel is then in another slot, which a cluster refuses. So on a cluster such a name is left as it is.
 */
export function latchChannel(name: string, clustered: boolean): string {
  const prefix = "redisson_countdownlatch__channel__";
  return clustered && name.includes("{") ? `${prefix}:${name}` : `${prefix}{${name}}`;
}

/** Behind an owner's name in the field of its write side. */
const WRITES = ":write";

/** The field of a writer in a read-write lock's hash. */
export function writeField(wireId: string): string {
  return `${wireId}${WRITES}`;
}

/** The owner whose write side a field stands for; undefined for any other field. */
export function writerOf(field: string): string | undefined {
  return field.endsWith(WRITES) ? field.slice(0, -WRITES.length) : undefined;
}

/** The key that lives as long as the `number`-th read hold of an owner. */
export function readHold(name: string, wireId: string, number: number): string {
  return suffixed(name, `${wireId}:rwlock_timeout:${number}`);
}

/**
 * The key that says that a wire id (of a hold, or of a permit) is over. It is Redisson's unlock latch, named by the
 * wire id instead of a random request id. A repeated release finds it and answers as the first one did. An acquire that
 * arrives after its own clean-up finds it and is refused.
 */
export function tombstone(name: string, wireId: string): string {
  return `${unlockLatch(name)}:${wireId}`;
}

export function tombstones(name: string, wireIds: readonly string[]): string[] {
  return wireIds.map((wireId) => tombstone(name, wireId));
}

const unlockLatch = prefixed("redisson_unlock_latch");

/**
 * As {@link tombstone}, of one call whose wire id lives on (a nested acquire, an extend, a release with holds left). Of
 * a call to a semaphore or latch it also says what the call came to. This key is the library's own, since Redisson has
 * none for it.
 */
export function callTombstone(name: string, callId: string): string {
  return `${over(name)}:${callId}`;
}

const over = prefixed("holdfast_over");

/** All further keys of a name, for all kinds. */
export function extraKeysOf(name: string, wireId: string): string[] {
  return [
    tokenCounter(name),
    fairQueue(name),
    fairTimeouts(name),
    fairAlive(name),
    waitingWriters(name),
    permitLeases(name),
    readHold(name, wireId, 1),
    tombstone(name, wireId),
    callTombstone(name, wireId),
  ];
}

/** All channels of a name, for all kinds; a fair lock has one for each waiter. */
export function extraChannelsOf(name: string, waiter: string, clustered: boolean): string[] {
  return [
    lockChannel(name),
    `${lockChannel(name)}:${waiter}`,
    readWriteChannel(name),
    semaphoreChannel(name),
    latchChannel(name, clustered),
  ];
}

/**
 * The key of the lock of this name.
 * @throws TypeError, RangeError for a wrong name, and for a name that no lock on a cluster can have
 */
export function lockKey(name: string, prefix: string, isCluster: boolean): string {
  checkName(name);
  const key = prefix ? `${prefix}:${name}` : name;
  if (isCluster && !sharesOneSlot(key)) {
    throw new RangeError(`on a cluster the braces of "${key}" would put its keys in different slots`);
  }
  return key;
}

/** True if all keys of a lock of this name share one slot of a cluster. */
export function sharesOneSlot(name: string): boolean {
  const open = name.indexOf("{");
  if (open < 0) return !name.includes("}");
  return name.indexOf("}", open + 1) > open + 1;
}

/** The key of what a client tells of itself; on a cluster each client's key has a slot of its own. */
export function clientKey(id: string): string {
  return `holdfast_client:${id}`;
}

/** The times until which clients that tell something count as present. */
export const CLIENT_INDEX = "holdfast_clients";
