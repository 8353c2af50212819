/**
 * The calls for members that have not answered when a quorum has granted the group: what such a member grants joins the
 * hold while it lives, and is undone otherwise. A refusal or an error is told to nobody.
 */
import type { Grant } from "../locks/owner-lock.js";
import { quietly } from "../locks/work.js";
import type { MemberAcquisition } from "./member-acquisition.js";

export class LateCalls {
  readonly #join: (grant: Grant) => void;
  /** With the votes that are to come. */
  readonly #calls = new Map<MemberAcquisition, Promise<unknown>>();

  /** `join` is told of what is granted in time. */
  constructor(join: (grant: Grant) => void) {
    this.#join = join;
  }

  /** `vote`: the try of the call. */
  add(call: MemberAcquisition, vote: Promise<unknown>): void {
    const { env } = call.own.table;
    this.#calls.set(call, vote);
    // A client that closes waits for what its server grants, and gives it back.
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

  /**
   * The hold is given back: nobody takes what is granted from here on. Each member's promise resolves when it has taken back what
   * it granted, and rejects if that was nothing.
   */
  end(): Promise<void>[] {
    const ended = [...this.#calls].map(([call, vote]) => takeBack(call, vote));
    this.#calls.clear();
    return ended;
  }

  /** The hold is over in any other way. */
  drop(): void {
    for (const ended of this.end()) void quietly(ended);
  }
}

/** Made once: it is told to nobody, and an error of each release would cost more than the release. */
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
