/**
 * What a row of the contract suite may do in any place: in virtual time, or on a real server. A place is opened for one
 * kind of lock and one row; nobody else uses its names.
 */
import type { Lock, LockClient, LockClientOptions } from "../../../src/index.js";
import type { Kind } from "./kinds.js";

export interface Place {
  readonly kind: Kind;
  /** The client of `lock`, and another one, as in another process. */
  readonly client: LockClient;
  readonly rivals: LockClient;
  readonly lock: Lock;
  /** A second lock of the kind. */
  readonly other: Lock;
  /** The lock that other owners cannot get while `lock` is held: the same one, but for the read side the write side. */
  readonly excluded: Lock;
  /** The same by the other client, so that it excludes `lock` too. */
  readonly rival: Lock;
  /** The same lock as `lock`, by the other client. */
  readonly twin: Lock;
  readonly view: View;
  /** The lock by a further client with these options, which ends with the row. */
  with(options: LockClientOptions): { readonly client: LockClient; readonly lock: Lock };
  /** Lets milliseconds pass. On a real server they pass by themselves: a row that needs more than two seconds is virtual only. */
  pass(ms: number): Promise<void>;
  /** Resolves with what `look` returns as soon as that is true and nothing is thrown; in virtual time without any time passing. */
  eventually<T>(look: () => T | Promise<T>): Promise<T>;
}

/** The first member's server as others see it, and what others do there. What changes a lock changes each member on its server. */
export interface View {
  /** The hash of `lock`. */
  hash(): Promise<Record<string, string>>;
  /** Milliseconds until the lock is free; -2 if it is, -1 if never. */
  ttl(): Promise<number>;
  /** The keys of the lock, without markers (tombstones, which expire by themselves) and token counters. */
  keys(): Promise<string[]>;
  /** The sum of the counts in the hash. */
  count(): Promise<number>;
  /** Sends one command to the server, past all clients; the lock's key is `name`. */
  call(...command: string[]): Promise<unknown>;
  readonly name: string;
  /** Deletes all keys of the lock, as FLUSHALL would. */
  wipe(): Promise<void>;
  /** Gives the lock to another owner, whoever has it now. Returns the hash, which has to stay from then on. */
  seize(ms?: number): Promise<Record<string, string>>;
}

/** The wire id of an owner in a process that is not here. */
export const STRANGER = "00000000-0000-4000-8000-000000000000:1";

/** True for traces of ended calls, which exclude nobody and expire by themselves, and for counters that never go. */
export const isTrace = (key: string): boolean =>
  /^(redisson_unlock_latch|holdfast_over|redisson_lock_token):/.test(key);

export function countIn(hash: Readonly<Record<string, string>>): number {
  const { mode: _, ...counts } = hash;
  return Object.values(counts).reduce((sum, count) => sum + Number(count), 0);
}
