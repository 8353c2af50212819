/** The locks and clients of one test of the core: a lock of its own, used by two clients. */
import type { Lock, LockClient, LockClientOptions } from "../../src/index.js";
import { UNHURRIED } from "../support/index.js";

export interface Act {
  readonly ours: LockClient;
  readonly theirs: LockClient;
  readonly lock: Lock;
  /** The lock that others cannot have beside `lock`, by our client and by theirs: for a read side the write side. */
  readonly excluded: Lock;
  readonly rival: Lock;
  /** The same lock as `lock`, by their client. */
  readonly twin: Lock;
}

/** Makes a lock that no other test uses; `ours` replaces our client, and the name ends with `ending`. */
export type NewAct = (ours?: LockClient, ending?: string) => Act;

/** Times so long that only a message can wake a waiter in time. */
export const FAR: LockClientOptions = { ...UNHURRIED, pollCap: 60_000, watchdogTimeout: 60_000 };
