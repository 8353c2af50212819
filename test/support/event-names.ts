import type { LockEventName } from "../../src/index.js";

/** All events of a client. */
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
