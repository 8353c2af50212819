/** The rule of a read-write lock that an owner who only reads can never come to write. */
import { LockUpgradeError } from "../base/errors.js";
import { encloses } from "../owners/context.js";
import type { Claim } from "./claim.js";
import type { Grant } from "./grant.js";

/**
 * False while a call that wants the write side has to wait for sibling runs of its owner that read.
 * @throws UPGRADE_REFUSED if it would wait for a read hold that can only end after it: a bare one, or one of a run that
 * it was called in
 */
export function admitsUpgrade({ primitive, caller, lockName }: Claim, holdings: Iterable<Grant>): boolean {
  if (primitive.side !== "write") return true;
  let reads = false;
  let blocked = false;
  for (const { isHeld, frame, primitive: other } of holdings) {
    if (!isHeld) continue;
    if (other.side === "write") return true;
    reads = true;
    blocked ||= !frame || encloses(frame, caller);
  }
  if (blocked) throw new LockUpgradeError(lockName);
  return !reads;
}
