/**
 * Members of one key by different clients. On one server they are one lock, so the hold on one member refuses the other in
 * whatever order they are tried.
 */
import { UnsupportedServerError } from "../base/errors.js";
import type { Grant } from "../locks/owner-lock.js";
import { isVisibleTo } from "../locks/visibility.js";
import type { MemberRequest } from "./member-requests.js";
import { type Member, type Members, memberKey } from "./members.js";

/**
 * A member has `refused` a call that has `taken` others. Asks that member's server, once for each pair of members and for
 * `within` milliseconds at most, whether it has the call's own hold on a namesake.
 * @throws UNSUPPORTED if so
 */
export async function assertNotItself(
  members: Members,
  refused: Member,
  taken: readonly (readonly [request: MemberRequest, grant: Grant])[],
  within: number,
): Promise<void> {
  for (const [{ member }, grant] of taken) {
    if (!mayRefuse(member, refused)) continue;
    const pair = `${memberKey(member)} ${memberKey(refused)}`;
    if (members.distinct?.has(pair)) continue;
    const { env, lock } = refused;
    const asked = env.runner.withTimeout(lock.name, isVisibleTo(env, grant), within);
    // Without an answer the next refusal asks again.
    const isItself = await asked.catch(() => undefined);
    if (isItself) throw oneLock(members.name, [member, refused]);
    // A grant that has ended by now need not have been there.
    if (isItself === undefined || !grant.isHeld) continue;
    members.distinct ??= new Set();
    members.distinct.add(pair);
  }
}

/** Whether the hold on one member refuses the other if both are on one server. */
function mayRefuse(one: Member, other: Member): boolean {
  const isShared = one.backend.traits.shared && other.backend.traits.shared;
  return one.backend.key === other.backend.key && one.env !== other.env && !isShared;
}

function oneLock(name: string, members: readonly Member[]): UnsupportedServerError {
  const names = members.map(({ lock }) => `"${lock.name}"`).join(" and ");
  return new UnsupportedServerError(
    name,
    `the members ${names} are one lock, by two clients of one server`,
    undefined,
    "name each lock once",
  );
}
