import type { Edit } from "./run.mjs";
import type { Kind } from "./schedule.js";

/** A mistake in the library. */
export interface Planted {
  readonly kind: Kind;
  /** From which on a few schedules find it. */
  readonly seed: number;
  /** Its histories alone show it. */
  readonly tellsByHistory?: boolean;
  readonly edits: readonly Edit[];
}

export const PLANTED: Readonly<Record<string, Planted>>;
