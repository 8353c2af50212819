/**
 * How a call acquires all members of a group, or none. The call waits for one member at a time, holding nothing. Once that
 * member is granted the call tries all others. If a member refuses, the call gives back what it took and waits for that
 * member. No call waits while it holds, so no orders of members can dead-lock.
 */
import { instant } from "../base/clock.js";
import { isLockError, LockLostError } from "../base/errors.js";
import type { Contestant } from "../engine/arbiter.js";
import { Wait } from "../engine/wait.js";
import type { LockRequest } from "../locks/acquisition-options.js";
import type { Grant } from "../locks/owner-lock.js";
import { limit } from "../locks/release.js";
import { quietly } from "../locks/work.js";
import { GroupGrant } from "./group-grant.js";
import type { MemberAcquisition } from "./member-acquisition.js";
import { actingOwner, callFor, giveBack, isHeldByOwner, type MemberRequest } from "./member-requests.js";
import type { Members } from "./members.js";
import { assertNotItself } from "./namesakes.js";

/** The share of a lease that may have passed when the last member is granted, and its bound in milliseconds. */
const SHARE_OF_LEASE = 1 / 100;
const MOST_OF_LEASE = 50;
/** A lease of so many `commandTimeout`s outlives all that follows the first grant: the other tries, and setting the lease anew. */
const LONG = 3;
/** Milliseconds of the longest pause after a lost round: two calls must not go on refusing each other. */
const LONGEST_PAUSE = 16;

export class AllOrNone {
  readonly #members: Members;
  readonly #requests: readonly MemberRequest[];
  readonly #request: LockRequest;
  readonly #wait: Wait;
  /** Aborts the member calls that wait inside the engines. */
  readonly #ending = new AbortController();
  readonly #begun: number;
  readonly #contestant: Contestant;
  #taken: (readonly [request: MemberRequest, grant: Grant])[] = [];
  /** The lease that each member is taken with; undefined if the watchdog keeps the members until the last grant. */
  readonly #lease: number | undefined;
  /** The call has failed: a later grant of a member is given back. */
  #over = false;
  #round = 0;
  /** Whether the `waiting` event was sent. */
  #announced = false;

  constructor(members: Members, requests: readonly MemberRequest[], request: LockRequest) {
    this.#members = members;
    this.#requests = requests;
    this.#request = request;
    const { clock, envs } = members;
    this.#begun = clock.mono();
    // With `replicas` a grant may take longer: its WAIT is added.
    const isLong = envs.every(
      ({ settings, replicas }) => !replicas && (request.lease ?? 0) >= LONG * settings.commandTimeout,
    );
    this.#lease = isLong ? request.lease : undefined;
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
      this.#ending.abort(error);
      const returned = this.#giveBack();
      if (!wait.ended) await returned;
      throw error;
    } finally {
      this.#members.engine.arbiter.gone(this.#contestant);
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
    // An owner that holds all members re-enters all at once, and before its next call.
    let awaited = this.#requests.every(isHeldByOwner) ? undefined : this.#requests[0];
    for (; ; this.#round++) {
      const again = this.#round > 0;
      while (this.#isHeldUp) await this.#letOthersPass();
      if (again && this.#left <= 0) return this.#late();
      if (awaited && !(await this.#wait.during(this.#await(awaited)))) return false;
      const refused = await this.#tryOthers(awaited);
      if (!refused) return true;
      await this.#wait.during(assertNotItself(this.#members, refused.member, this.#taken, this.#left));
      await this.#giveBack();
      if (this.#request.wait === 0) return false;
      awaited = this.#standIn(refused);
      if (again) {
        this.#members.engine.arbiter.lost(this.#contestant);
        await this.#wait.park(Math.min(this.#left, this.#pause()));
      }
    }
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
    const { signal } = this.#ending;
    return this.#take(request, (call) => engine.acquire(call, left, signal, this.#announced));
  }

  /** Tries all other members at once; resolves with the first member that refused. */
  async #tryOthers(awaited: MemberRequest | undefined): Promise<MemberRequest | undefined> {
    const others = this.#requests.filter((request) => request !== awaited);
    const left = Math.max(1, this.#left);
    const tries = others.map((request) => {
      const { engine, runner } = request.member.env;
      const within = Math.min(runner.commandTimeout, left);
      return this.#take(request, (call) => engine.once(call, within, this.#ending.signal));
    });
    const results = await this.#wait.during(Promise.allSettled(tries));
    let refused: MemberRequest | undefined;
    for (const [i, result] of results.entries()) {
      if (result.status === "rejected" && !this.#mayPass(result.reason)) throw result.reason;
      if (result.status === "rejected" || !result.value) refused ??= others[i];
    }
    if (refused && this.#request.wait > 0) this.#announce();
    return refused;
  }

  /** Whether the call goes on in spite of this error: a call that has waited survives an outage. */
  #mayPass(error: unknown): boolean {
    return this.#announced && isLockError(error, "UNAVAILABLE");
  }

  async #take(
    request: MemberRequest,
    acquire: (call: MemberAcquisition) => Promise<Grant | undefined>,
  ): Promise<Grant | undefined> {
    const call = callFor(request, this.#request, { lease: this.#lease, onWaiting: () => this.#announce() });
    const grant = await acquire(call);
    if (!grant) return undefined;
    if (this.#over) void quietly(giveBack(request, grant));
    else this.#taken.push([request, grant]);
    return grant;
  }

  #announce(): void {
    if (this.#announced) return;
    this.#announced = true;
    this.#members.emit("waiting", {});
  }

  /** Gives back all members that the call took, the last first; resolves when they are back, or the call's time is over. */
  async #giveBack(): Promise<void> {
    const returned = this.#taken.reverse().map(([request, grant]) => quietly(giveBack(request, grant)));
    this.#taken = [];
    if (this.#wait.ended || returned.length === 0) return;
    void Promise.all(returned).then(() => this.#wait.resume());
    await this.#wait.park(Math.max(0, this.#left));
  }

  /** The member to wait for: with both sides of one lock as members the write side, since a reader is refused the write side. */
  #standIn(refused: MemberRequest): MemberRequest {
    return this.#requests.find(({ member }) => member.key === refused.member.key) as MemberRequest;
  }

  #pause(): number {
    return this.#members.random() * Math.min(LONGEST_PAUSE, 2 ** this.#round);
  }

  #late(): false {
    const away = this.#requests.find(({ member: { env, backend } }) =>
      env.runner.servers.isAway(backend.key),
    );
    if (away) throw away.member.env.runner.unavailable(this.#members.name);
    return false;
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

  /** Whether the members were taken with the lease, and nearly all of it is left. */
  #isWhole(grants: readonly Grant[]): boolean {
    const lease = this.#lease;
    if (lease === undefined) return false;
    const now = instant(this.#members.clock);
    const whole = lease - Math.min(lease * SHARE_OF_LEASE, MOST_OF_LEASE);
    return grants.every((grant) => grant.serverLeftAt(now) >= whole);
  }

  /** Makes the hold. Its lease begins with the last member's grant, so it is set now, unless {@link #isWhole}. */
  async #conclude(): Promise<GroupGrant | undefined> {
    const { all: members, name } = this.#members;
    const { lease } = this.#request;
    const grants = members.map(
      (member) => this.#taken.find(([request]) => request.member === member)?.[1] as Grant,
    );
    if (lease !== undefined && !this.#isWhole(grants) && !(await this.#limit(grants, lease)))
      return undefined;
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
