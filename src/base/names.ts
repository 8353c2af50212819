/**
 * How a lock's name becomes the names of its keys and channels on the wire, which are Redisson's.
 * Keys that only this library writes start with `holdfast_`, in the same hash slot.
 */

/** `P:N`, braced so that it shares the slot of `N`. */
function prefixed(prefix: string, name: string): string {
  return name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`;
}

/** Where releases of a plain or fenced lock, and of the head of a fair queue, are announced. */
export function lockChannel(name: string): string {
  return prefixed("redisson_lock__channel", name);
}

/**
 * The key that says that the wire id (of a hold, or of one nested call) is over. It is Redisson's unlock latch, named
 * by the wire id instead of a random request id: a repeated release finds it and answers as the first one did, and
 * an acquire that arrives after its own clean-up finds it and is refused.
 */
export function tombstone(name: string, wireId: string): string {
  return `${prefixed("redisson_unlock_latch", name)}:${wireId}`;
}

/**
 * As {@link tombstone}, of one call of a wire id that lives on: a nested acquire, an extend, a release with holds left.
 * A key of our own, since Redisson has none for it.
 */
export function callTombstone(name: string, callId: string): string {
  return `${prefixed("holdfast_over", name)}:${callId}`;
}

/** True if all keys of a lock of this name share one slot of a cluster. */
export function sharesOneSlot(name: string): boolean {
  const open = name.indexOf("{");
  if (open < 0) return !name.includes("}");
  return name.indexOf("}", open + 1) > open + 1;
}
