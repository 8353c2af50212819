/** The Redlock algorithm: one lock over independent masters, held by a majority of them. */

import type { Lock } from "../lock/lock.js";
import type { Asked } from "../lock/options.js";
import type { GroupCall } from "./group-call.js";
import { MajorityCall } from "./majority.js";
import { Masters } from "./masters.js";
import { MultiLock } from "./multi-lock.js";

const FEWEST = 3;

/**
 * One lock over independent masters (Redlock, https://redis.io/docs/latest/develop/use/patterns/distributed-locks/):
 * held while a majority of the members is. Survives the loss of a minority of the masters. It is only as safe as clocks
 * that run alike and masters that do not forget. A master that restarts empty within a lease can vote twice.
 * @example
 * const masters = ["redis://a", "redis://b", "redis://c"].map((url) => LockClient.connect(url));
 * const lock = new RedLock(...masters.map((master) => master.getLock("leader")));
 * await lock.run(() => sell("42"));
 */
export class RedLock extends MultiLock {
  /** @throws TypeError as of {@link MultiLock}, for fewer than three locks, and for two at one address */
  constructor(...locks: Lock[]) {
    super(...locks);
    if (locks.length < FEWEST) throw new TypeError(`a RedLock needs at least ${FEWEST} locks`);
  }

  /** @internal */
  protected static override membersOf(locks: readonly unknown[]): Masters {
    return new Masters(locks);
  }

  /** @internal */
  protected override callOf(members: Masters, asked: Asked): GroupCall {
    return new MajorityCall(members, asked);
  }
}
