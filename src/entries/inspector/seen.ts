/** One look at all locks. */
import type { LockInfo } from "../../index.js";

export interface Look {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly locks: readonly LockInfo[];
  /** There are more locks than the limit. */
  readonly truncated: boolean;
}
