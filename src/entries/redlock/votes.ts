/** Finds out which masters voted for an attempt and which against. It asks them only for what the attempt has not told. */
import { type Hold, MultiHold } from "../../index.js";
import { type ExecutionStats, ResourceLockedError } from "./errors.js";
import type { Master } from "./masters.js";

/** Resolves with undefined for a vote in favour, and with the error of one against. */
type Vote = (master: Master) => Promise<Error | undefined>;

function quorumOf(masters: readonly Master[]): number {
  return Math.floor(masters.length / 2) + 1;
}

/** The votes on an attempt that has succeeded. A master that was not among the first answers the question after the attempt. */
export function votesFor(
  masters: readonly Master[],
  names: readonly string[],
  holds: readonly Hold[],
): Promise<ExecutionStats> {
  return count(masters, async (master) => {
    const isIn = () => holds.every((hold) => isPartOf(hold, master));
    if (!isIn()) await isLocked(master, names);
    return isIn() ? undefined : locked(names);
  });
}

/**
 * The votes on an attempt that has failed: what the masters say now. A master that would grant it votes in favour, but
 * these votes never make a quorum.
 */
export async function votesAgainst(
  masters: readonly Master[],
  names: readonly string[],
  cause: Error | undefined,
): Promise<ExecutionStats> {
  const stats = await count(masters, async (master) =>
    (await isLocked(master, names)) ? locked(names) : undefined,
  );
  for (const redis of [...stats.votesFor].slice(stats.quorumSize - 1)) {
    stats.votesFor.delete(redis);
    stats.votesAgainst.set(redis, cause ?? locked(names));
  }
  return stats;
}

/** The votes on a lock that is lost, or was given back before: all are against. */
export function noneFor(masters: readonly Master[], names: readonly string[]): Promise<ExecutionStats> {
  return count(masters, async () => new ResourceLockedError(`${list(names)} not held by this lock`));
}

async function count(masters: readonly Master[], vote: Vote): Promise<ExecutionStats> {
  const stats: ExecutionStats = {
    membershipSize: masters.length,
    quorumSize: quorumOf(masters),
    votesFor: new Set(),
    votesAgainst: new Map(),
  };
  const votes = masters.map(async (master) => {
    const against = await vote(master).catch((error: Error) => error);
    if (against) stats.votesAgainst.set(master.redis, against);
    else stats.votesFor.add(master.redis);
  });
  await Promise.all(votes);
  return stats;
}

/** Whether the master is one of those that granted the hold. */
function isPartOf(hold: Hold, { client }: Master): boolean {
  const parts = hold instanceof MultiHold ? hold.members : [hold];
  return parts.some(({ ownerId }) => ownerId.startsWith(`${client.id}:`));
}

async function isLocked({ client }: Master, names: readonly string[]): Promise<boolean> {
  const answers = await Promise.all(names.map((name) => client.getLock(name).isLocked()));
  return answers.includes(true);
}

function locked(names: readonly string[]): ResourceLockedError {
  return new ResourceLockedError(`${list(names)} locked by another`);
}

function list(names: readonly string[]): string {
  return `${names.map((name) => JSON.stringify(name)).join(", ")} ${names.length === 1 ? "is" : "are"}`;
}
