/** The rule of a read-write lock that an owner with read holds only cannot get the write side. */
import { LockUpgradeError } from "../base/errors.js";
import { encloses, type Frame } from "../owners/context.js";
import type { Backend } from "./backend.js";
import { holdsOf } from "./holds.js";
import type { OwnerLock } from "./owner-lock.js";

/** A call, made in the run or scope `caller`. */
export interface Upgrade {
  readonly backend: Backend;
  readonly caller: Frame | undefined;
  readonly own: OwnerLock;
}

/**
 * Whether a call that wants the write side may try; false while sibling runs of its owner read. `ordered`: the commands
 * that its owner called before it have ended.
 * @throws UPGRADE_REFUSED if the call would wait for a read hold that can only end after the call: a bare hold, or the
 * hold of a run that the call was made in
 */
export function admitsUpgrade({ backend, caller, own }: Upgrade, ordered: boolean): boolean {
  let reads = false;
  let blocked = false;
  for (const { isHeld, frame, side, state } of holdsOf(own)) {
    // A write hold on its way back is still held on the server: its unlock was called later than this call.
    if (side === "write" && (isHeld || (ordered && state === "ended"))) return true;
    if (!isHeld) continue;
    reads = true;
    blocked ||= !frame || encloses(frame, caller);
  }
  if (blocked) throw new LockUpgradeError(backend.lockName);
  return !reads;
}
