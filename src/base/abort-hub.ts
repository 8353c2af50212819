/** One listener for each AbortSignal, however many waiters share it: Node warns of a leak at the eleventh listener. */

const hub = new WeakMap<AbortSignal, { callbacks: Set<() => void>; listener: () => void }>();

/** Calls back once when the signal aborts. The returned function ends that; the last of them removes the listener. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let entry = hub.get(signal);
  if (!entry) {
    const callbacks = new Set<() => void>();
    const listener = () => {
      // The last waiter first: when a waiter leaves the end of a queue, no other waiter becomes the first.
      for (const each of [...callbacks].reverse()) each();
    };
    entry = { callbacks, listener };
    hub.set(signal, entry);
    signal.addEventListener("abort", listener);
  }
  const { callbacks, listener } = entry;
  callbacks.add(callback);
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0) return;
    hub.delete(signal);
    signal.removeEventListener("abort", listener);
  };
}
