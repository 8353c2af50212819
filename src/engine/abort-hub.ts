/** One listener for each AbortSignal, however many waiters share it: Node warns of a leak at the eleventh. */

const hub = new WeakMap<AbortSignal, { callbacks: Set<() => void>; listener: () => void }>();

/** Calls back once when the signal aborts. Returns the way to stop that; the last one takes the listener off. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let entry = hub.get(signal);
  if (!entry) {
    const callbacks = new Set<() => void>();
    const listener = () => {
      // The last first: who leaves a queue from its end moves nobody up.
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
