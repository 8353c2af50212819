/** What an owner has of a lock, by the lock's key. */
import type { Party } from "../owners/context.js";
import type { Env } from "./env.js";
import { Tenure } from "./tenure.js";

export function stakeOf(owner: Party, lockKey: string): Tenure | undefined {
  return owner.stakes.stakeOf(lockKey) as Tenure | undefined;
}

/** Under which its live holds stand in Redis; undefined without one, and for nobody. */
export function wireIdOf(owner: Party | undefined, lockKey: string): string | undefined {
  return owner && stakeOf(owner, lockKey)?.wireId;
}

/** For a call that wants a hold of the lock of this key. Without an owner it gets one when that is asked for. */
export function tenureOf(env: Env, owner: Party | undefined, key: string): Tenure {
  return (owner && stakeOf(owner, env.lockKey(key))) ?? new Tenure(env, owner, key);
}
