import type { Edit } from "./run.mjs";
import type { Kind } from "./schedule.js";

/** The library with one mistake each. `seed`: from which on a few schedules find it. */
export const PLANTED: Readonly<Record<string, { kind: Kind; seed: number; edits: readonly Edit[] }>>;
