import type { LockEventName } from "../../src/index.js";

/** All that a client tells. */
export const EVENTS: readonly LockEventName[] = [
  "acquired",
  "released",
  "waiting",
  "rejected",
  "gaveUp",
  "longHold",
  "renewed",
  "suspended",
  "lost",
  "error",
];
