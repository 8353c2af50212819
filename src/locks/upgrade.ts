/** The rule of a read-write lock that an owner who only reads can never come to write. */
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
 * Of a call that wants the write side: false while it has to wait for sibling runs of its owner that read. `ordered`: it
 * is its turn among the commands of its owner.
 * @throws UPGRADE_REFUSED if it would wait for a read hold that can only end after it: a bare one, or one of a run that
 * it was called in
 */
export function admitsUpgrade({ backend, caller, own }: Upgrade, ordered: boolean): boolean {
  let reads = false;
  let blocked = false;
  for (const { isHeld, frame, side, state } of holdsOf(own)) {
    // One on its way back is still held on the server: its unlock was called later.
    if (side === "write" && (isHeld || (ordered && state === "ended"))) return true;
    if (!isHeld) continue;
    reads = true;
    blocked ||= !frame || encloses(frame, caller);
  }
  if (blocked) throw new LockUpgradeError(backend.lockName);
  return !reads;
}
