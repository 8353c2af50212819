/** The votes of a RedLock's masters, and how long a round waits for them. */
import { isLockError, type LockError, QuorumError } from "../base/errors.js";
import type { Attempt } from "../engine/acquisition.js";
import type { Env } from "../locks/env.js";
import type { Grant } from "../locks/owner-lock.js";
import { isUnresponsive, type Members } from "./members.js";
import { countFulfilled, rejected, type Settled, settled } from "./settled.js";

export type Vote = Settled<Attempt<Grant>>;

/** Milliseconds that a master has for its answer, however short the lease. */
export const SHORTEST_ANSWER_TIME = 50;
/** The share of a lease that one master has for its answer. */
const SHARE_OF_LEASE = 1 / 100;

/** Milliseconds that one master has for its answer. `lease`: milliseconds; undefined for the watchdog's. */
export function answerTime({ settings }: Env, lease: number | undefined): number {
  const share = (lease ?? settings.watchdogTimeout) * SHARE_OF_LEASE;
  return Math.min(settings.commandTimeout, Math.max(SHORTEST_ANSWER_TIME, share));
}

/** Milliseconds: where members wake waiters one by one (fair locks), a waiter for a majority tries at random times up to this. */
const LONGEST_LOOK = 250;

/** The grants among the votes. */
export function granted(votes: readonly Vote[]): Grant[] {
  const grants: Grant[] = [];
  for (const vote of votes)
    if (vote?.status === "fulfilled" && vote.value.granted) grants.push(vote.value.value);
  return grants;
}

/** Whether a majority has granted the round, or no majority can any more. */
export function isDecided(votes: readonly Vote[], quorum: number): boolean {
  let inFavour = 0;
  let open = 0;
  for (const vote of votes) {
    if (!vote) open++;
    else if (vote.status === "fulfilled" && vote.value.granted) inFavour++;
  }
  return inFavour >= quorum || inFavour + open < quorum;
}

/** Whether a master has answered; a grant that came too late counts as an answer. */
export function isAnswer(vote: Vote): boolean {
  return vote?.status === "fulfilled" || isLockError(vote?.reason, "LOCK_LOST");
}

/** Whether the vote tells nothing: the hold that the call was to re-enter at this master turned out to be lost. */
function isOutdated(vote: Vote): boolean {
  return vote?.status === "fulfilled" && !vote.value.granted && vote.value.ttl === 0;
}

/** Whether a master has said that another owner holds the lock. */
export function isRefusal(vote: Vote): boolean {
  return vote?.status === "fulfilled" && !vote.value.granted && vote.value.ttl !== 0;
}

export function answers(votes: readonly Vote[]): number {
  return votes.filter(isAnswer).length;
}

/** Milliseconds until a majority of masters may be free, if no holder renews or releases; Infinity if that is not known. */
function untilFree({ quorum }: Members, votes: readonly Vote[]): number {
  const waits = votes.map((vote) => {
    if (vote?.status !== "fulfilled") return isAnswer(vote) ? 0 : Number.POSITIVE_INFINITY;
    if (vote.value.granted) return 0;
    return vote.value.ttl < 0 ? Number.POSITIVE_INFINITY : vote.value.ttl;
  });
  return waits.sort((a, b) => a - b)[quorum - 1] ?? 0;
}

/** Milliseconds until a try without a message is due; Infinity where messages can be relied on. */
export function untilLook({ random, all: members }: Members): number {
  const serverQueued = members.some(({ backend }) => backend.traits.serverQueued);
  return serverQueued ? random() * LONGEST_LOOK : Number.POSITIVE_INFINITY;
}

/** Milliseconds until the next round, if no message comes before; 0: at once, -1: not known. */
export function untilNextLook(members: Members, votes: readonly Vote[], backoff: number): number {
  const free = untilFree(members, votes);
  if (free === 0 && votes.some(isOutdated)) return 0;
  const pause = Math.min(untilLook(members), Math.max(free, backoff));
  return pause === Number.POSITIVE_INFINITY ? -1 : Math.max(1, pause);
}

/** How many masters have granted the round, in time or not. */
export function countInFavour(votes: readonly Vote[]): number {
  return votes.filter((vote) => isAnswer(vote) && !isRefusal(vote) && !isOutdated(vote)).length;
}

/** The error for a call that got too few answers: the error that all masters agree on, or QUORUM. */
export function tooFewAnswers(
  { name, all: members }: Members,
  results: readonly Settled<unknown>[],
  votes: number,
): LockError {
  const errors = rejected(results).filter((error) => !isLockError(error, "LOCK_LOST"));
  const [first] = errors;
  const agreed =
    isLockError(first) &&
    first.code !== "UNAVAILABLE" &&
    errors.every((error) => isLockError(error, first.code));
  return agreed ? withErrors(first, errors) : new QuorumError(name, votes, members.length, errors);
}

/** The error for a call whose wait is over while masters are away: made of the errors of these masters alone. */
export function nobodyAnswered({ name, all: members }: Members): LockError | undefined {
  const errors = members.filter(isUnresponsive).map(({ env }) => env.runner.unavailable(name));
  return errors[0] && withErrors(errors[0], errors);
}

/**
 * Waits until a quorum of `work` is done. The work of `late` members counts as well, but is not waited for. Resolves with
 * the error of work that too few members have done.
 */
export async function mostDone(
  quorum: number,
  work: readonly Promise<void>[],
  late: readonly Promise<void>[] = [],
): Promise<unknown> {
  const own = work.length;
  const isOver = (so: readonly Settled<void>[]) =>
    countFulfilled(so) >= quorum || (late.length > 0 && so.slice(0, own).every(Boolean));
  const results = await settled([...work, ...late], isOver);
  return countFulfilled(results) >= quorum ? undefined : tooFewDone(results.slice(0, own), quorum);
}

/** The error for work that fewer than `quorum` members of a hold have done. */
function tooFewDone(results: readonly Settled<unknown>[], quorum: number): unknown {
  const errors = rejected(results);
  const isLoss = (error: unknown) => isLockError(error, "LOCK_LOST");
  // With a quorum of members not lost, the lost ones are not why the work failed.
  const isLost = results.length - errors.filter(isLoss).length < quorum;
  const first = errors.find((error) => isLockError(error) && isLoss(error) === isLost);
  return first ? withErrors(first as LockError, errors) : errors[0];
}

/** Adds the errors of a group's members to the error that stands for all of them. */
export function withErrors<E extends LockError>(error: E, errors: unknown[]): E {
  Object.defineProperty(error, "errors", { value: errors, configurable: true });
  return error;
}
