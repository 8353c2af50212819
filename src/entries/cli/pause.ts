/** Waits, unless the command is told to end. */
import { clearTimeout, LONGEST_TIMER, setTimeout } from "../../base/platform.js";

/** Resolves after `ms`, some weeks at most; rejects with the signal's reason if the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", end);
        resolve();
      },
      Math.min(ms, LONGEST_TIMER),
    );
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}

/** What the work resolves with; undefined if that takes longer than `ms`. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const over = new AbortController();
  try {
    return await Promise.race([work, pause(ms, over.signal).then(() => undefined)]);
  } finally {
    over.abort();
  }
}
