/**
 * The members of a RedLock, each on a master of its own. They say how many answers decide, and how long a call is
 * patient with masters that give none.
 */
import { failure, isLockError, type LockError, type LockErrorCode, QuorumError } from "../base/errors.js";
import { setImmediate } from "../base/platform.js";
import type { Kind } from "../kinds/kind.js";
import { isCluster } from "../redis/connection.js";
import { isUnresponsive, Members, type Outcomes, outcomes, type Question, withErrors } from "./members.js";

/** Milliseconds that a master has for its answer, however short the lease. */
const SHORTEST_ANSWER_TIME = 50;
/** The share of a lease that one master has for its answer. */
const SHARE_OF_LEASE = 1 / 100;
/** A client that has so many calls to undo, late votes among them, is asked for no more. */
const MOST_OVERDUE = 8;

/** Where a member's server is: two votes of one server would be one. A client whose address is not known stands for it. */
function addressOf({ env }: Kind): unknown {
  const { connection } = env.runner;
  if (isCluster(connection)) return env;
  const { host, port, path, sentinels, name } = connection.options;
  // Sentinels tell the address of a master by its name; ioredis' own host and port say nothing then.
  if (sentinels) return `${name} of ${sentinels.map((each) => `${each.host}:${each.port}`).join(", ")}`;
  return path ?? (host === undefined ? env : `${host}:${port}`);
}

/** Whether the member's server seems to be away, or far behind. One that connects for the first time is not away. */
function isLate(member: Kind): boolean {
  const { runner } = member.env;
  return runner.cleanUp.size >= MOST_OVERDUE || (isUnresponsive(member) && !runner.isFresh);
}

export class Masters extends Members {
  /** @throws TypeError as of {@link Members}, and for two locks at one address */
  constructor(locks: readonly unknown[]) {
    super(locks, "red", Math.floor(locks.length / 2) + 1);
    const addresses = this.parts.map(addressOf);
    const twice = addresses.find((address, i) => addresses.indexOf(address) < i);
    if (twice === undefined) return;
    throw new TypeError(
      `two members of a RedLock are at one address (${typeof twice === "string" ? twice : "one client"}); ` +
        "give each member a master of its own",
    );
  }

  /** Milliseconds that a master has for its answer, if `commandTimeout` is not shorter. */
  answerTime(lease: number = this.env.settings.watchdogTimeout): number {
    const share = lease * SHARE_OF_LEASE;
    return Math.max(SHORTEST_ANSWER_TIME, share);
  }

  /** A majority goes without those that are late: commands to them would pile up. */
  get worthAsking(): readonly Kind[] {
    const prompt = this.parts.filter((member) => !isLate(member));
    return prompt.length >= this.quorum ? prompt : this.parts;
  }

  /**
   * Resolves when a majority of the masters is connected, or cannot be: a first connection may take longer than an answer. If a
   * master seems to be away, the replies that have arrived are read first: after a stall of this process every server looks
   * silent.
   */
  connecting(): Promise<unknown> | undefined {
    const { parts, quorum } = this;
    const fresh = parts.filter(({ env }) => env.runner.isFresh);
    const missing = quorum - (parts.length - fresh.length);
    if (missing > 0) {
      const arrivals = fresh.map(({ env }) => env.runner.arrival());
      return outcomes(arrivals, missing);
    }
    return parts.some(isLate) ? new Promise((resolve) => setImmediate(resolve)) : undefined;
  }

  /** Asks all that are worth it, each for as long as it has time for a vote. */
  override async ask<T>(question: Question<T>): Promise<Outcomes<T>> {
    await this.connecting();
    const { worthAsking } = this;
    return super.ask((lock, member) => {
      const { lockName } = member;
      const { runner } = member.env;
      if (!worthAsking.includes(member)) return failure(runner.unavailable(lockName));
      return runner.withTimeout(lockName, question(lock, member), this.answerTime());
    });
  }

  /** The error that all masters without an answer agree on, or QUORUM. */
  override undecided({ values, errors }: Outcomes<unknown>): LockError {
    const [first] = errors;
    const isAgreed = (code: LockErrorCode) => errors.every((error) => isLockError(error, code));
    if (isLockError(first) && first.code !== "UNAVAILABLE" && isAgreed(first.code))
      return withErrors(first, errors);
    const inFavour = values.filter((answer) => Number(answer) > 0).length;
    return new QuorumError(this.lockName, inFavour, this.parts.length, errors);
  }
}
