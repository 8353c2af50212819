/** The hold that users get of a group of locks. */
import { Hold, recordOf } from "../lock/hold.js";
import type { HoldRecord } from "../lock/hold-record.js";
import type { GroupGrant } from "./group-grant.js";

/**
 * A hold on a MultiLock or RedLock: lost when one of its members is, or too many for a majority.
 * @example
 * const hold = await new MultiLock(client.getLock("account:1"), client.getLock("account:2")).lock();
 * await hold.unlock();
 */
export class MultiHold extends Hold {
  /**
   * The members' holds, in the order of the members. A RedLock's hold begins with a majority of them; members that
   * grant it later join while it is held. If you give back a member by itself, the group's hold ends once fewer than
   * all (of a RedLock: than a majority) are left. It is lost, `forced`, and the rest is given back.
   */
  get members(): Hold[] {
    return (recordOf(this).grant as GroupGrant).views;
  }
}

/** What the user gets for a hold of a group: one object, as long as somebody keeps it. */
export function multiViewOf(record: HoldRecord<GroupGrant>): MultiHold {
  record.view ??= new MultiHold(record);
  return record.view as MultiHold;
}
