/**
 * How a call acquires all members of a group, or none. It tries all at once; where others are known to be at work it waits
 * for the first member, and tries the others once that one is granted. If a member refuses, the call gives back what it took
 * and waits for that member. No call waits while it holds, so no orders of members can dead-lock.
 */
import { instant } from "../base/clock.js";
import { isLockError, LockLostError } from "../base/errors.js";
import { quietly } from "../base/work.js";
import type { Contestant } from "../engine/arbiter.js";
import { Wait } from "../engine/wait.js";
import type { LockRequest } from "../locks/acquisition-options.js";
import type { Grant } from "../locks/owner-lock.js";
import { limit } from "../locks/release.js";
import { GroupGrant } from "./group-grant.js";
import { isWhole, leaseOfTries } from "./group-lease.js";
import { pauseAfter } from "./lost-round.js";
import type { MemberAcquisition } from "./member-acquisition.js";
import {
  actingOwner,
  assertNoUpgrade,
  callFor,
  giveBack,
  isHeldByOwner,
  type MemberRequest,
  ownerIdOf,
  standIn,
} from "./member-requests.js";
import type { Members } from "./members.js";
import { assertNotItself } from "./namesakes.js";

export class AllOrNone {
  readonly #members: Members;
  readonly #requests: readonly MemberRequest[];
  readonly #request: LockRequest;
  readonly #wait: Wait;
  /** The calls for members of this round. */
  #calls: MemberAcquisition[] = [];
  readonly #begun: number;
  readonly #contestant: Contestant;
  #taken: (readonly [request: MemberRequest, grant: Grant])[] = [];
  /** The lease that each member is taken with; undefined if the watchdog keeps the members until the last grant. */
  readonly #lease: number | undefined;
  /** The call has failed: a later grant of a member is given back. */
  #over = false;
  #round = 0;
  /** The first round was one for all members. */
  #triedAll = false;
  /** Milliseconds that the last round took. */
  #roundTime = 0;
  /** Whether the `waiting` event was sent. */
  #announced = false;

  constructor(members: Members, requests: readonly MemberRequest[], request: LockRequest) {
    this.#members = members;
    this.#requests = requests;
    this.#request = request;
    const { clock, envs } = members;
    this.#begun = clock.mono();
    this.#lease = leaseOfTries(request.lease, envs);
    // `wait` is not given to this Wait but to each step, as the time left: the engine knows what the end of that means.
    this.#wait = new Wait({ clock, wait: Number.POSITIVE_INFINITY, signal: request.signal });
    this.#contestant = {
      keys: new Set(members.all.map(({ backend }) => backend.key)),
      since: this.#begun,
      wait: this.#wait,
      clock,
    };
  }

  /** Resolves with the hold; undefined if `wait` was not enough. */
  async collect(): Promise<GroupGrant | undefined> {
    const wait = this.#wait;
    const left = this.#members.envs.map(({ engine }) =>
      engine.join(this.#members.name, (reason) => wait.end(reason)),
    );
    try {
      let group: GroupGrant | undefined;
      while (!group && (await this.#rounds())) group = await this.#conclude();
      return group;
    } catch (error) {
      this.#over = true;
      for (const call of this.#calls.reverse()) call.own.table.env.engine.end(call, error);
      const returned = this.#giveBack();
      if (!wait.ended) await returned;
      throw error;
    } finally {
      this.#members.engine.arbiter.gone(this.#contestant);
      if (this.#triedAll) this.#members.engine.contention.leave(this.#contestant.keys);
      wait.dispose();
      for (const leave of left) leave();
    }
  }

  /** Milliseconds that the call may still take; Infinity for a call with `wait` 0, which its commands' time-outs bound. */
  get #left(): number {
    const { wait } = this.#request;
    return wait === 0 ? Number.POSITIVE_INFINITY : wait - (this.#members.clock.mono() - this.#begun);
  }

  /** Resolves with true once all members are taken, with false if `wait` was not enough. */
  async #rounds(): Promise<boolean> {
    let awaited = this.#mayTryAll() ? undefined : this.#requests[0];
    for (; ; this.#round++) {
      const again = this.#round > 0;
      this.#calls = [];
      assertNoUpgrade(this.#requests, this.#request);
      while (this.#isHeldUp) await this.#letOthersPass();
      if (again && this.#left <= 0) {
        this.#members.assertThere();
        return false;
      }
      if (awaited && !(await this.#wait.during(this.#await(awaited)))) return false;
      const refused = await this.#tryOthers(awaited);
      if (!refused) return true;
      this.#members.engine.contention.met(this.#contestant.keys, this.#members.clock.mono());
      await this.#wait.during(assertNotItself(this.#members, refused.member, this.#taken, this.#left));
      await this.#giveBack();
      if (this.#request.wait === 0) return false;
      awaited = standIn(this.#requests, refused);
      if (again) {
        const pause = pauseAfter(this.#round, this.#roundTime, this.#members.random());
        await this.#wait.park(Math.min(this.#left / 2, pause));
        // After the pause: a turn is too short to sleep in it.
        this.#members.engine.arbiter.lost(this.#contestant);
      }
    }
  }

  /** Without contention one round is enough. An owner that holds all members re-enters all at once, before its next call. */
  #mayTryAll(): boolean {
    if (this.#requests.every(isHeldByOwner)) return true;
    const { wait, named, caller } = this.#request;
    // A call that does not wait may come again and again; an owner's calls take turns in the line of the first member.
    if (wait === 0 || named || caller || this.#round > 0 || this.#members.needCare) return false;
    this.#triedAll = this.#members.engine.contention.enter(this.#contestant.keys, this.#begun);
    return this.#triedAll;
  }

  get #isHeldUp(): boolean {
    // The calls that this one would let pass may be waiting for what its owner holds.
    if (this.#requests.some(isHeldByOwner)) return false;
    return this.#request.wait > 0 && this.#left > 0 && this.#members.engine.arbiter.holdsUp(this.#contestant);
  }

  #letOthersPass(): Promise<void> {
    this.#announce();
    return this.#members.engine.arbiter.awaitTurn(this.#contestant, this.#left);
  }

  /** Waits for one member in the queue of that member, in the order of that queue. */
  #await(request: MemberRequest): Promise<Grant | undefined> {
    const { wait } = this.#request;
    const { engine } = request.member.env;
    const left = wait === 0 ? 0 : Math.max(1, this.#left);
    return this.#take(request, (call) => engine.acquire(call, left, undefined, this.#announced));
  }

  /** Tries all other members at once; resolves with the first member that refused. */
  async #tryOthers(awaited: MemberRequest | undefined): Promise<MemberRequest | undefined> {
    const others = this.#requests.filter((request) => request !== awaited);
    const left = Math.max(1, this.#left);
    this.#members.gather();
    const tries = others.map((request) => {
      const { engine } = request.member.env;
      return this.#take(request, (call) => engine.once(call, left, this.#announced));
    });
    const begun = this.#members.clock.mono();
    const results = await this.#wait.during(Promise.allSettled(tries));
    this.#roundTime = this.#members.clock.mono() - begun;
    const refused = others[results.findIndex(isRefusal)];
    if (refused && this.#request.wait > 0) this.#announce();
    for (const result of results) {
      if (result.status === "rejected" && !this.#mayPass(result.reason, refused)) throw result.reason;
    }
    return refused ?? others[results.findIndex(({ status }) => status === "rejected")];
  }

  /** Whether silence changes nothing: a call that has waited survives an outage, and one that is `refused` a member is so anyhow. */
  #mayPass(error: unknown, refused?: MemberRequest): boolean {
    return (this.#announced || refused !== undefined) && isLockError(error, "UNAVAILABLE");
  }

  async #take(
    request: MemberRequest,
    acquire: (call: MemberAcquisition) => Promise<Grant | undefined>,
  ): Promise<Grant | undefined> {
    const call = callFor(request, this.#request, { lease: this.#lease, onWaiting: () => this.#announce() });
    this.#calls.push(call);
    const grant = await acquire(call);
    if (!grant) return undefined;
    if (this.#over) void quietly(giveBack(request, grant));
    else this.#taken.push([request, grant]);
    return grant;
  }

  #announce(): void {
    if (this.#announced) return;
    this.#announced = true;
    this.#members.emit("waiting", { ownerId: ownerIdOf(this.#requests, this.#members) });
  }

  /** Gives back all members that the call took, the last first; resolves when they are back, or the call's time is over. */
  async #giveBack(): Promise<void> {
    const returned = this.#taken.reverse().map(([request, grant]) => quietly(giveBack(request, grant)));
    this.#taken = [];
    if (this.#wait.ended || returned.length === 0) return;
    void Promise.all(returned).then(() => this.#wait.resume());
    await this.#wait.park(Math.max(0, this.#left));
  }

  /** Sets the lease of all members. False if it could not be told: all is given back, and a further round is due. */
  async #limit(grants: readonly Grant[], lease: number): Promise<boolean> {
    const { runner, name } = this.#members;
    const shortened = Promise.all(grants.map((grant) => limit(grant, lease)));
    try {
      await this.#wait.during(runner.withTimeout(name, shortened, Math.max(1, this.#left)));
      return true;
    } catch (error) {
      if (this.#wait.ended || !this.#mayPass(error)) throw error;
      await this.#giveBack();
      this.#round++;
      return false;
    }
  }

  /** Makes the hold. Its lease begins with the last member's grant, so it is set now, unless it {@link isWhole}. */
  async #conclude(): Promise<GroupGrant | undefined> {
    const { all: members, name } = this.#members;
    const { lease } = this.#request;
    const grants = members.map(
      (member) => this.#taken.find(([request]) => request.member === member)?.[1] as Grant,
    );
    const isSet = lease === undefined || isWhole(this.#lease, grants, instant(this.#members.clock));
    if (!isSet && !(await this.#limit(grants, lease))) return undefined;
    const acting = actingOwner(this.#request.owner, this.#requests);
    const group = new GroupGrant(this.#members, acting, grants, (grants[0] as Grant).ownerId);
    group.check();
    if (!group.isHeld) {
      const loss = grants.find((grant) => grant.loss)?.loss;
      throw new LockLostError(name, loss?.reason ?? "expired", this.#members.clock.wall());
    }
    group.watch();
    return group;
  }
}

function isRefusal(result: PromiseSettledResult<Grant | undefined>): boolean {
  return result.status === "fulfilled" && !result.value;
}
