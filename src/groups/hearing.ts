/** Listening to the masters of a RedLock: a hint from one is none, for with one vote free nobody wins. */
import type { Listener } from "../engine/acquisition.js";
import type { LockAcquisition } from "../locks/acquire.js";

/** `heard`: who has given a hint since the last try; emptied by every try, which sees what came before it. */
export function listenToMost(
  calls: readonly LockAcquisition[],
  quorum: number,
  heard: Set<LockAcquisition>,
  listener: Listener,
): () => void {
  const deaf = new Set<LockAcquisition>();
  const stops = calls.map((call) =>
    call.listen({
      hint: () => {
        if (heard.add(call).size < quorum) return;
        heard.clear();
        listener.hint();
      },
      refused: (error) => {
        if (deaf.add(call).size > calls.length - quorum) listener.refused(error);
      },
    }),
  );
  return () => {
    for (const stop of stops) stop();
  };
}
