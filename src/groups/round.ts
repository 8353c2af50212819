/** One round of a RedLock: what the masters say to the tries that were sent to all of them at once. */
import type { Attempt } from "../engine/acquisition.js";
import type { Grant } from "../locks/owner-lock.js";
import { noop } from "../locks/work.js";
import { isUnresponsive, type Member, type Members } from "./members.js";
import { granted, type Vote } from "./votes.js";

/** Milliseconds: a timer is no more exact. */
const SHORTEST_GRACE = 1;

/**
 * The votes, once a majority has granted the round or none can. With a majority, the masters that keep up with it have as long again
 * as it took: a hold that all have granted outlives more failures. One that is later than that is a laggard, for whom no
 * further round waits until it keeps up again.
 */
export function votesOf(
  { all: members, quorum, clock }: Members,
  round: readonly Promise<Attempt<Grant>>[],
): Promise<readonly Vote[]> {
  const begun = clock.mono();
  const votes: Vote[] = round.map(() => undefined);
  let open = round.length;
  /** Milliseconds that every master has. */
  let time: number | undefined;
  let stop = noop;
  return new Promise((resolve) => {
    const decide = () => {
      stop();
      resolve([...votes]);
    };
    const isAwaited = (member: Member, i: number) =>
      !votes[i] && !member.env.masters.lagging && !isUnresponsive(member);
    const endGrace = () => {
      for (const [i, { env }] of members.entries()) if (!votes[i]) env.masters.lagging = true;
      decide();
    };
    const note = (i: number, vote: Vote) => {
      votes[i] = vote;
      open--;
      const took = clock.mono() - begun;
      (members[i] as Member).env.masters.lagging = time !== undefined && took > time;
      const missing = quorum - granted(votes).length;
      if (missing > open) return decide();
      if (missing > 0) return;
      const isFirst = time === undefined;
      time ??= 2 * took + SHORTEST_GRACE;
      if (!members.some(isAwaited)) decide();
      else if (isFirst) stop = clock.after(took + SHORTEST_GRACE, endGrace);
    };
    for (const [i, vote] of round.entries()) {
      vote.then(
        (value) => note(i, { status: "fulfilled", value }),
        (reason: unknown) => note(i, { status: "rejected", reason }),
      );
    }
  });
}
