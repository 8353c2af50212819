/** The Redlock algorithm: one lock over independent masters, held by a majority of them. */
import type { LockKind } from "../base/events.js";
import type { Asked } from "../lock/face.js";
import type { Lock } from "../lock/lock.js";
import type { Frame } from "../owner/context.js";
import { isCluster } from "../redis/connection.js";
import type { GroupCall } from "./group-call.js";
import { MajorityCall } from "./majority.js";
import type { Member } from "./members.js";
import { MultiLock, membersOf } from "./multi-lock.js";
import { answerTime, connecting } from "./patience.js";
import { fulfilled, tooFewAnswers, type Vote } from "./votes.js";

const FEWEST = 3;

/**
 * One lock over independent masters (Redlock, https://redis.io/docs/latest/develop/use/patterns/distributed-locks/): held
 * while a majority of the members is. Survives the loss of a minority of the masters. It is only as safe as clocks that
 * run alike and masters that do not forget: one that restarts empty within a lease can vote twice.
 * @example
 * const masters = ["redis://a", "redis://b", "redis://c"].map((url) => LockClient.connect(url));
 * const lock = new RedLock(...masters.map((master) => master.getLock("leader")));
 * await lock.run(() => sell("42"));
 */
export class RedLock extends MultiLock {
  /** @internal */
  protected static override readonly kind: LockKind = "red";

  /** @throws TypeError as of {@link MultiLock}, for fewer than three locks, and for two at one address */
  constructor(...locks: Lock[]) {
    super(...locks);
    if (locks.length < FEWEST) throw new TypeError(`a RedLock needs at least ${FEWEST} locks`);
    const addresses = membersOf(this).all.map(addressOf);
    const twice = addresses.find((address, i) => addresses.indexOf(address) < i);
    if (twice === undefined) return;
    throw new TypeError(
      `two members of a RedLock are at one address (${typeof twice === "string" ? twice : "one client"}); ` +
        "give each member a master of its own",
    );
  }

  /** @internal */
  protected static override quorumOf(members: number): number {
    return Math.floor(members / 2) + 1;
  }

  /** @internal */
  protected override callOf(asked: Asked, frames: ReadonlyMap<Member, Frame>): GroupCall {
    return new MajorityCall(membersOf(this), asked, frames);
  }

  /** @internal */
  protected override async ask<T>(
    question: (member: Member) => Promise<T>,
    isDecided?: (so: readonly Vote<T>[]) => boolean,
  ): Promise<readonly Vote<T>[]> {
    const members = membersOf(this);
    members.assertOpen();
    await connecting(members);
    return super.ask(question, isDecided);
  }

  /** @internal */
  protected override inTime<T>(member: Member, answer: Promise<T>): Promise<T> {
    return member.env.runner.withTimeout(member.lock.name, answer, answerTime(member, undefined));
  }

  /** @internal */
  protected override unanswered(so: readonly Vote[]): unknown {
    const inFavour = fulfilled(so).filter((answer) => Number(answer) > 0).length;
    return tooFewAnswers(this.name, membersOf(this).all.length, inFavour, so);
  }
}

/** Where a member's server is: two votes of one server would be one. A client whose address is not known stands for it. */
function addressOf({ env }: Member): unknown {
  const { connection } = env.runner;
  if (isCluster(connection)) return env;
  const { host, port, path } = connection.options as { host?: string; port?: number; path?: string };
  return path ?? (host === undefined ? env : `${host}:${port}`);
}
