/** What the calls of all kinds are made of: the keys and arguments that their scripts share. */
import { countOf, type Rest, TOMBSTONE_TTL } from "../locks/backend.js";
import type { Call } from "../redis/call.js";
import type { ArgumentValues, KeyValues } from "../scripts/script.js";

/** A call of some script, whose keys and arguments were checked against each other where it was made. */
export interface AnyCall extends Call<KeyValues, ArgumentValues> {
  within?: number;
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

export function remaining(rest: Rest, publish: string): RemainingArguments {
  return { count: countOf(rest), left: rest.left, tombstoneTtl: TOMBSTONE_TTL, publish };
}
