/** How long a call for a RedLock is patient with its masters: for their first connections, their answers, and between rounds. */
import { setImmediate } from "../base/platform.js";
import { quietly } from "../base/work.js";
import { isUnresponsive, type Member, type Members } from "./members.js";
import { fulfilled, rejected, votes } from "./votes.js";

/** Milliseconds that a master has for its answer, however short the lease. */
const SHORTEST_ANSWER_TIME = 50;
/** The share of a lease that one master has for its answer. */
const SHARE_OF_LEASE = 1 / 100;
/** With so many late votes still to come, a server is asked for no more. */
const MOST_OVERDUE = 8;
/** Milliseconds that one round is taken to last. */
const SHORTEST_ROUND = 1;
const LONGEST_ROUND = 20;
/** The pause after a split vote doubles with each in a row, so many times at most. */
const MOST_DOUBLINGS = 3;
/** Milliseconds: where members wake waiters one by one (fair locks), a waiter for a majority tries at random times up to this. */
const LONGEST_LOOK = 250;

/** Milliseconds that one master has for its answer. `lease`: milliseconds; undefined for the watchdog's. */
export function answerTime({ env: { settings } }: Member, lease: number | undefined): number {
  const share = (lease ?? settings.watchdogTimeout) * SHARE_OF_LEASE;
  return Math.min(settings.commandTimeout, Math.max(SHORTEST_ANSWER_TIME, share));
}

/** Whether a majority goes without this member's vote: commands to a server that is away, or far behind, would pile up. */
export function isSpared(member: Member): boolean {
  const { env, kind } = member;
  return isUnresponsive(member) || (env.masters.overdue.get(kind.key) ?? 0) >= MOST_OVERDUE;
}

/** So many votes of this member are still to come that no call waits for: one more until `undone`. */
export function owes({ env, kind: { key } }: Member, undone: Promise<unknown>): void {
  const { overdue } = env.masters;
  overdue.set(key, (overdue.get(key) ?? 0) + 1);
  void quietly(undone).then(() => {
    const left = (overdue.get(key) ?? 1) - 1;
    if (left > 0) overdue.set(key, left);
    else overdue.delete(key);
  });
}

/** Milliseconds to wait after so many split votes in a row, for a round that took `took`. */
export function pauseAfter(split: number, took: number, chance: number): number {
  const round = Math.min(LONGEST_ROUND, Math.max(SHORTEST_ROUND, took));
  return chance * round * 2 ** Math.min(split, MOST_DOUBLINGS);
}

/** Milliseconds until a try without a message is due; Infinity where messages can be relied on. */
export function untilLook({ first, all }: Members): number {
  const serverQueued = all.some(({ kind }) => kind.traits.serverQueued);
  return serverQueued ? first.env.settings.random() * LONGEST_LOOK : Number.POSITIVE_INFINITY;
}

/**
 * Resolves when the masters are connected, or have failed to connect; undefined if there is nothing to wait for. A first
 * connection may take longer than an answer, so the first round waits for it: for a majority of masters as long as for a
 * command, for the others a short time more. If a master seems to be away, the replies that have arrived are read first:
 * after a stall of this process every server looks silent.
 */
export function connecting(members: Members): Promise<void> | undefined {
  const { all, quorum } = members;
  const fresh = all.filter(({ env }) => env.masters.isFresh);
  const late = fresh.filter(({ env }) => !env.masters.awaited);
  if (late.length > 0 || all.length - fresh.length < quorum) return arrive(members, fresh, late);
  return all.some(isSpared) ? new Promise((resolve) => setImmediate(resolve)) : undefined;
}

async function arrive(
  { all, quorum, first, name }: Members,
  fresh: readonly Member[],
  late: readonly Member[],
): Promise<void> {
  const arrivals = all.map((member) =>
    fresh.includes(member) ? member.env.masters.arrival() : Promise.resolve(),
  );
  const hopeless = all.length - quorum + 1;
  await votes(arrivals, (so) => fulfilled(so).length >= quorum || rejected(so).length >= hopeless);
  if (late.length === 0) return;
  await quietly(first.env.runner.withTimeout(name, Promise.allSettled(arrivals), SHORTEST_ANSWER_TIME));
  for (const { env } of late) env.masters.awaited = true;
}
