/** What the calls of all kinds are made of: the keys and arguments that their scripts share, and how replies are read. */
import type { LockError } from "../base/errors.js";
import { type Rest, TAKEN, TOMBSTONE_TTL } from "../locks/backend.js";
import type { AnyScriptCall } from "../redis/call.js";

/** A call of some script, whose keys and arguments were checked against each other where it was made. */
export interface AnyCall extends AnyScriptCall {
  within?: number;
  vital?: boolean;
}

/** What ends a hold, or a call for one. */
export interface Ending {
  readonly wireId: string;
  /** The key of the tombstone that says so. */
  readonly over: string;
  readonly rest: Rest;
}

export interface ReleaseKeys {
  readonly lock: string;
  readonly channel: string;
  readonly tombstone: string;
}

/** Of all scripts that end something. */
export interface EndingArguments extends RemainingArguments {
  readonly owner: string;
}

/** What an ending leaves, and how it is told. */
export interface RemainingArguments {
  readonly count: number;
  readonly left: number;
  readonly tombstoneTtl: number;
  readonly publish: string;
}

/** Of all scripts that give a lock back by force. */
export function forceArguments(publish: string): { readonly tombstoneTtl: number; readonly publish: string } {
  return { tombstoneTtl: TOMBSTONE_TTL, publish };
}

export function remaining({ terms, left }: Rest, publish: string): RemainingArguments {
  // None stay on the side if the server has let go of all.
  const count = terms.some((term) => term > 0) ? terms.length : 0;
  return { count, left, tombstoneTtl: TOMBSTONE_TTL, publish };
}

/** The server's word on a hold. */
export function word(reply: unknown): number {
  return Number(reply);
}

/** All numbers of a reply. */
export function words(reply: unknown): number[] {
  return (reply as unknown[]).map(Number);
}

/** A key that holds other data by now was taken from its holder. */
export function takenByOthers(error: LockError): number | undefined {
  return error.code === "WRONG_DATA" ? TAKEN : undefined;
}
