/** What one test of the core has: a lock of its own, seen by two clients. */
import type { Lock, LockClient, LockClientOptions } from "../../src/index.js";
import { UNHURRIED } from "../support/index.js";

export interface Act {
  readonly ours: LockClient;
  readonly theirs: LockClient;
  readonly lock: Lock;
  /** What others cannot have beside `lock`, by our client and by theirs: of a read side the write side. */
  readonly excluded: Lock;
  readonly rival: Lock;
  /** The lock itself, by their client. */
  readonly twin: Lock;
}

/** A lock that no other test has; by this client instead of ours, if one is given, and of a name that ends so. */
export type NewAct = (ours?: LockClient, ending?: string) => Act;

/** So far away that only a message can wake anybody in time. */
export const FAR: LockClientOptions = { ...UNHURRIED, pollCap: 60_000, watchdogTimeout: 60_000 };
