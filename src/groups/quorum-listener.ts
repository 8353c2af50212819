/** Listening to the masters of a RedLock: a hint from one is none, for with one vote free nobody wins. */
import type { Acquisition, Listener } from "../engine/acquisition.js";
import type { LockAcquisition } from "../locks/acquire.js";
import { noop } from "../locks/work.js";
import type { Members } from "./members.js";
import { answers, isAnswer, type Vote } from "./votes.js";

/**
 * Wakes the call of a round that too few answered in time when late answers make a majority: nobody else may, for a
 * release that fell into the silence was announced before the call could try for it. Returns the way to stop.
 */
export function wakeByLateAnswers(
  members: Members,
  votes: readonly Vote[],
  call: Acquisition<unknown>,
): () => void {
  if (call.over) return noop;
  let missing = members.quorum - answers(votes);
  const answered = () => {
    if (--missing > 0) return;
    members.engine.queue(members.key)?.hint();
    // A call that re-enters stands in no line.
    call.resume();
  };
  const silent = members.all.filter((_, i) => !isAnswer(votes[i]));
  const stops = silent.map(({ env, backend }) => env.runner.servers.healthOf(backend.key).onAnswer(answered));
  return () => {
    for (const stop of stops) stop();
  };
}

/** `heard`: who has given a hint since the last try; emptied by every try, which sees what came before it. */
export function listenToMost(
  calls: readonly LockAcquisition[],
  quorum: number,
  heard: Set<unknown>,
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
