/** Listening to the masters of a RedLock. One master's hint wakes no call: with one vote free no call wins. */

import { noop } from "../base/work.js";
import type { Acquisition, Listener } from "../engine/acquisition.js";
import type { LockAcquisition } from "../locks/acquire.js";
import type { Members } from "./members.js";
import { answers, isAnswer, type Vote } from "./votes.js";

/**
 * Wakes the call of a round with too few answers when late answers make a majority. Returns the way to stop. Without it:
 *
 *     the holder releases, and its message calls for a round
 *     the masters are silent: the round fails
 *     the masters answer again; no further message comes, and the call sleeps on
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
    // A call that re-enters is in no queue.
    call.resume();
  };
  const silent = members.all.filter((_, i) => !isAnswer(votes[i]));
  const stops = silent.map(({ env, backend }) => env.runner.servers.healthOf(backend.key).onAnswer(answered));
  return () => {
    for (const stop of stops) stop();
  };
}

/** `heard`: the calls that got a hint since the last try. Each try empties it, since the try sees what came before. */
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
