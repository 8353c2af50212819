/** The user's object for a hold on a group of locks. */
import { leaveAlone } from "../locks/dropped.js";
import { Hold, viewOf } from "../locks/hold.js";
import type { HoldVerbs } from "../locks/hold-record.js";
import type { Grant } from "../locks/owner-lock.js";
import type { GroupGrant } from "./group-grant.js";
import type { Member } from "./members.js";

const VERBS: HoldVerbs<GroupGrant> = {
  check: (group) => group.check(),
  extend: (group, lease) => group.extend(lease),
  release: (group) => group.release(),
};

/** On a member's hold, its group's: a dropped hold is given back, so this keeps the group's while the user keeps the member's. */
const GROUP = Symbol("group");

/**
 * A hold on a MultiLock or RedLock: lost when one of its members is, or too many for a majority.
 * @example
 * const hold = await new MultiLock(client.getLock("account:1"), client.getLock("account:2")).lock();
 * await hold.unlock();
 */
export class MultiHold extends Hold {
  readonly #group: GroupGrant;
  /** The members' holds of one that is given back once it is garbage; made at the first use of `members`. */
  #watched: Map<Grant, Hold> | undefined;

  /** Holds are made by locks. @internal */
  constructor(group: GroupGrant) {
    super(group, VERBS);
    this.#group = group;
  }

  /**
   * The members' holds, in the order of the members. A RedLock's hold begins with a majority of them; members that grant it
   * later join while it is held. Giving back a member by itself ends the group's hold once fewer than all (of a RedLock: than
   * a majority) are left: it is lost, `forced`, and the rest is given back.
   */
  get members(): Hold[] {
    // Made now if need be, so that the members' holds have the owner of the group's.
    this.#group.owner;
    return this.#group.grants.map((grant) => this.#viewOf(grant));
  }

  #viewOf(grant: Grant): Hold {
    const { all } = this.#group.members;
    const { makeHold } = all.find(({ backend }) => backend === grant.backend) as Member;
    return (
      this.#watched?.get(grant) ??
      (this.#group.drop ? this.#watch(grant, makeHold(grant)) : viewOf(grant, makeHold))
    );
  }

  /** Ties a member's hold to this one, which may be garbage meanwhile: so the member's record may not refer to either. */
  #watch(grant: Grant, view: Hold): Hold {
    this.#watched ??= new Map();
    this.#watched.set(grant, view);
    Object.defineProperty(view, GROUP, { value: this });
    const group = this.#group;
    const made = new WeakRef(view);
    grant.drop = {
      forget: () => {
        // One that was given back is no reason to keep the rest.
        if (grant.state !== "live") return;
        leaveAlone(group);
        grant.view ??= made.deref();
      },
    };
    return view;
  }
}

/** The user's object for a hold that its owner asks for: a bare hold has none yet. */
export function multiHoldOf(group: GroupGrant): MultiHold {
  return viewOf(group, (each) => new MultiHold(each));
}
