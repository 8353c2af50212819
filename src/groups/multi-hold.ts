/** What a user holds of a group of locks. */
import { Hold } from "../locks/hold.js";
import { GROUP_VERBS, type GroupGrant } from "./group-grant.js";

/** Who keeps the hold of a member keeps that of the group. */
const GROUPS = new WeakMap<Hold, MultiHold>();

/** A hold on a MultiLock or RedLock: lost when one of its members is, or too many for a majority. */
export class MultiHold extends Hold {
  /** The holds that it is made of, in the order of the members; a RedLock's may be a majority of them only. */
  readonly members: readonly Hold[];

  /** Holds are made by locks. */
  constructor(grant: GroupGrant, members: readonly Hold[]) {
    super(grant, GROUP_VERBS);
    this.members = members;
    for (const member of members) GROUPS.set(member, this);
  }
}
