/** Listening to the masters of a RedLock: a hint from one is none, for with one vote free nobody wins. */
import type { Listener } from "../engine/acquisition.js";
import type { Claim } from "../locks/claim.js";

/** `heard`: who has given a hint since the last try; emptied by every try, which sees what came before it. */
export function listenToMost(
  claims: readonly Claim[],
  quorum: number,
  heard: Set<Claim>,
  listener: Listener,
): () => void {
  const deaf = new Set<Claim>();
  const stops = claims.map((claim) =>
    claim.listen({
      hint: () => {
        if (heard.add(claim).size < quorum) return;
        heard.clear();
        listener.hint();
      },
      refused: (error) => {
        if (deaf.add(claim).size > claims.length - quorum) listener.refused(error);
      },
    }),
  );
  return () => {
    for (const stop of stops) stop();
  };
}
