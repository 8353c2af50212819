/**
 * Gives back what a group's hold has of the members, the last one first. The same commands may grant the members to the next
 * call of this process.
 */
import type { Successor } from "../engine/acquisition.js";
import type { Grant } from "../locks/owner-lock.js";
import { release } from "../locks/release.js";
import { type Member, type Members, successorAt } from "./members.js";

/** The outcome of each member's release. */
export function releaseAll(
  members: Members,
  grants: readonly Grant[],
  choose?: (member: Member) => Successor | undefined,
): readonly Promise<void>[] {
  members.gather();
  return members.lastFirst.flatMap((member) => {
    const grant = grants.find(({ backend }) => backend === member.backend);
    return grant ? release(grant, choose && (() => choose(member))) : [];
  });
}

/** As {@link releaseAll}, to the next call for the group if there is one; `successors`: how many members may go to it. */
export function handOver(
  members: Members,
  grants: readonly Grant[],
): { released: readonly Promise<void>[]; successors: number } {
  let released: readonly Promise<void>[] | undefined;
  let [successors, isOver] = [0, false];
  members.engine.queue(members.key)?.handOver((call, decision) => {
    // No successor of the group: the queue of each member may have one.
    if (decision === "release") return false;
    released = releaseAll(members, grants, (member) => {
      // A command that was sent behind others grants nothing: the call does not await its answer.
      const successor = isOver ? undefined : successorAt(call, member, decision);
      if (successor) successors++;
      return successor;
    });
    isOver = true;
    return successors > 0;
  });
  released ??= releaseAll(members, grants);
  return { released, successors };
}
