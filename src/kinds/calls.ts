/**
 * The keys and arguments that the scripts of all kinds share, and how their replies are read.
 *
 * Where a kind adds its own to those of all, they stand before the spread, `{ field, ...shared }`: behind it a new key
 * costs a microsecond on Node 20, and a second spread four.
 */
import type { LockError } from "../base/errors.js";
import { type Rest, TAKEN, TOMBSTONE_TTL } from "../locks/backend.js";
import type { AnyScriptCall } from "../redis/call.js";

/** A call of any script. The code that made it has checked its keys and arguments by type. */
export interface AnyCall extends AnyScriptCall {
  within?: number;
  vital?: boolean;
}

/** The end of a hold, or of a call that wants one. */
export interface Ending {
  readonly wireId: string;
  /** The key of the tombstone that this end writes. */
  readonly over: string;
  readonly rest: Rest;
}

export interface ReleaseKeys {
  readonly lock: string;
  readonly channel: string;
  readonly tombstone: string;
}

/** Arguments of all scripts that end a hold or a call. */
export interface EndingArguments extends RemainingArguments {
  readonly owner: string;
}

/** Arguments that say which holds stay, and how the release is announced. */
export interface RemainingArguments {
  readonly count: number;
  readonly left: number;
  readonly tombstoneTtl: number;
  readonly publish: string;
}

/** Arguments of all scripts that give a lock back by force. */
export function forceArguments(publish: string): { readonly tombstoneTtl: number; readonly publish: string } {
  return { tombstoneTtl: TOMBSTONE_TTL, publish };
}

export function remaining({ terms, left }: Rest, publish: string): RemainingArguments {
  // If the leases of all holds on this side are over, the server counts none of them any more.
  const count = terms.some((term) => term > 0) ? terms.length : 0;
  return { count, left, tombstoneTtl: TOMBSTONE_TTL, publish };
}

/** Reads the server's word on a hold. */
export function word(reply: unknown): number {
  return Number(reply);
}

/** Reads all numbers of a reply. */
export function words(reply: unknown): number[] {
  return (reply as unknown[]).map(Number);
}

/** If the key has other data by now, the holder's lock was taken from it. */
export function takenByOthers(error: LockError): number | undefined {
  return error.code === "WRONG_DATA" ? TAKEN : undefined;
}
