/** Listening to the masters of a RedLock: a hint from one is none, for with one vote free nobody wins. */
import type { Listener } from "../engine/contender.js";
import type { Wait } from "../engine/wait.js";
import type { Claim } from "../locks/claim.js";
import { noop } from "../locks/work.js";
import type { Roster } from "./roster.js";
import { answers, isAnswer, type Vote } from "./votes.js";

/**
 * Wakes the call of a round that too few answered in time when late answers make a majority: nobody else may, for a
 * release that fell into the silence was announced before the call could try for it. Returns the way to stop.
 */
export function wakeByLateAnswers(roster: Roster, votes: readonly Vote[], wait: Wait): () => void {
  if (wait.ended) return noop;
  let missing = roster.quorum - answers(votes);
  const answered = () => {
    if (--missing > 0) return;
    roster.engine.wake(roster.key);
    // A call that re-enters stands in no line.
    wait.resume();
  };
  const silent = roster.members.filter((_, i) => !isAnswer(votes[i]));
  const stops = silent.map(({ env, primitive }) => env.link.healthOf(primitive.key).onAnswer(answered));
  return () => {
    for (const stop of stops) stop();
  };
}

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
