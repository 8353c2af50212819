/**
 * The calls for members that had not answered when a quorum had granted the group. A member's late grant joins the hold
 * while the hold lives, and is undone otherwise. A late refusal or error has no effect.
 */

import { quietly } from "../base/work.js";
import { type Grant, giveOwner } from "../locks/owner-lock.js";
import type { OwnerRecord } from "../owners/context.js";
import type { MemberAcquisition } from "./member-acquisition.js";

export class LateCalls {
  readonly #join: (grant: Grant) => void;
  /** Each open call with its vote. */
  readonly #calls = new Map<MemberAcquisition, Promise<unknown>>();

  /** `join`: called with each grant that comes while the hold lives. */
  constructor(join: (grant: Grant) => void) {
    this.#join = join;
  }

  /** `vote`: the outcome of the call's try. */
  add(call: MemberAcquisition, vote: Promise<unknown>): void {
    const { env } = call.own.table;
    this.#calls.set(call, vote);
    // A client's close() waits for the grant of its server, and gives it back.
    if (call.lastTry) env.settle(call.lastTry);
    const answered = () => {
      if (!this.#calls.delete(call)) return;
      const { grant } = call;
      const isTaken = grant !== undefined && !env.closed;
      call.leave(isTaken);
      if (isTaken) this.#join(grant);
    };
    vote.then(answered, answered);
  }

  has(call: MemberAcquisition): boolean {
    return this.#calls.has(call);
  }

  /** The hold has an owner now: its later commands for these members go behind the tries. */
  giveOwner(owner: OwnerRecord): void {
    for (const call of this.#calls.keys()) {
      call.orderTry();
      giveOwner(call.own, owner);
    }
  }

  /**
   * The hold is being given back: a grant that comes from here on is undone. The promise for a member resolves when its
   * grant is undone, and rejects if the member granted nothing.
   */
  end(): Promise<void>[] {
    const ended = [...this.#calls].map(([call, vote]) => takeBack(call, vote));
    this.#calls.clear();
    return ended;
  }

  /** As {@link end}, for a hold that was lost or never handed out. */
  drop(): void {
    for (const ended of this.end()) void quietly(ended);
  }
}

/** Made once: nobody sees it, and a new Error for each release would cost more than the release. */
const NOTHING_GRANTED = new Error("nothing was granted");

/** See {@link LateCalls.end}. */
async function takeBack(call: MemberAcquisition, vote: Promise<unknown>): Promise<void> {
  const { own } = call;
  const { overdue } = own.table.env.masters;
  overdue.set(own.key, (overdue.get(own.key) ?? 0) + 1);
  call.leave(false);
  try {
    await vote;
  } finally {
    const left = (overdue.get(own.key) as number) - 1;
    if (left > 0) overdue.set(own.key, left);
    else overdue.delete(own.key);
  }
  await call.behind;
  if (!call.granted) throw NOTHING_GRANTED;
}
