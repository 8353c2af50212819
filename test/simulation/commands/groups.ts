/** Many locks as one. A seat is one count of what its owner has of a member, or a call that becomes one. */
import type { Call, Client, Grant, Hold, Outcome, Owner } from "./client.js";
import type { Lock, Side } from "./lock.js";
import type { World } from "./world.js";

export interface Member {
  readonly lock: Lock;
  readonly side: Side;
}

export class Group {
  readonly owner: Owner;
  readonly lease: number;
  readonly members: readonly Member[];
  readonly #isRed: boolean;
  readonly #world: World;
  readonly #holds: (Hold | undefined)[] = [];
  readonly #calls: (Call | undefined)[] = [];
  /** Members that have refused, or not answered. */
  #without = new Set<number>();
  #rounds = 0;
  state: "trying" | "held" | "over" = "trying";

  constructor(world: World, owner: Owner, members: readonly Member[], isRed: boolean, lease: number) {
    this.#world = world;
    this.owner = owner;
    this.members = members;
    this.#isRed = isRed;
    this.lease = lease;
    this.#round();
  }

  get #quorum(): number {
    return this.#isRed ? Math.floor(this.members.length / 2) + 1 : this.members.length;
  }

  get #client(): Client {
    return this.owner.client;
  }

  /** When fewer seats are left than it needs. */
  get deadline(): number {
    return this.deadlineOf(() => true);
  }

  /** As if it had no other seats than these. */
  deadlineOf(counts: (grant: Grant) => boolean): number {
    const ends = this.members.map((_member, i) => {
      const grant = this.#holds[i]?.grant;
      return grant?.state === "held" && counts(grant) ? grant.deadline : 0;
    });
    ends.sort((a, b) => b - a);
    const isLax = this.#world.errs("a group lasts as long as its best seat");
    return ends[isLax ? 0 : this.#quorum - 1] ?? 0;
  }

  #round(): void {
    this.#rounds++;
    this.#without = new Set();
    this.#world.count("rounds");
    for (const i of this.members.keys()) if (!this.#follows(i)) this.#ask(i);
  }

  /** The read side of a lock is taken when its write side has been. */
  #follows(i: number): boolean {
    return i > 0 && this.members[i - 1]?.lock === this.members[i]?.lock;
  }

  #ask(i: number, isWaiting = false): void {
    const { lock, side } = this.members[i] as Member;
    if (this.state === "over" || this.#holds[i]) return;
    const done = (outcome: Outcome, hold?: Hold) => this.#vote(i, outcome, hold);
    this.#calls[i] = this.#client.lock(this.owner, {
      lock,
      side,
      lease: this.lease,
      isWaiting,
      joinsLate: this.#isRed,
      done,
    });
  }

  #vote(i: number, outcome: Outcome, hold: Hold | undefined): void {
    if (this.state === "over") {
      if (hold) this.#client.unlock(hold);
      return;
    }
    if (!hold) {
      this.#without.add(i);
      if (this.state === "trying" && this.#without.size > this.members.length - this.#quorum)
        this.#lose(outcome, i);
      return;
    }
    this.#holds[i] = hold;
    if (!this.#isRed && this.members.every((_each, k) => k === i || this.#follows(k) || !this.#calls[k]))
      return this.#round();
    if (this.#follows(i + 1)) this.#ask(i + 1);
    if (this.state === "held" || this.#holds.filter(Boolean).length < this.#quorum) return;
    if (this.#world.now >= this.deadline) return this.#lose("failed", i);
    this.state = "held";
    this.#world.count("groups granted");
  }

  /** A lost round gives back what it took. A MultiLock waits for the member that it did not get, then takes the rest. */
  #lose(outcome: Outcome, i: number): void {
    this.#giveBack();
    if (this.#isRed || outcome !== "refused" || this.#rounds > 2) this.end();
    else this.#ask(i, true);
  }

  #giveBack(): void {
    for (const call of this.#calls.splice(0)) if (call) this.#drop(call);
    for (const hold of this.#holds.splice(0).reverse()) {
      if (!hold) continue;
      this.#client.unlock(hold);
      if (this.#world.errs("a lost round ends what its owner had") && hold.grant.state === "held")
        this.#client.endForGood(hold.grant);
    }
  }

  #drop(call: Call): void {
    if (call.state === "over") return;
    if (this.#world.errs("a silent seat is not ended") && !call.isInFlight) call.id.isOver = true;
    const { state } = this;
    this.state = "over";
    this.#client.abort(call);
    this.state = state;
  }

  /** Gives up, or gives back, or finds itself lost. */
  end(): void {
    this.state = "over";
    this.#giveBack();
  }
}
