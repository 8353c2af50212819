/**
 * How all members of a group are acquired, or none: the call waits for one member at a time, holding nothing of its own,
 * and tries the others once it has that one. Refused one of them, it gives back what it took and waits for that one. Since
 * nobody waits while holding, no orders of members can dead-lock.
 */
import { instant } from "../base/clock.js";
import { isLockError, LockLostError } from "../base/errors.js";
import type { Arbiter, Contestant } from "../engine/arbiter.js";
import { Wait } from "../engine/wait.js";
import type { OwnedRequest } from "../locks/acquisition-options.js";
import type { Grant } from "../locks/owner-lock.js";
import { limit } from "../locks/release.js";
import { quietly } from "../locks/work.js";
import { GroupGrant } from "./group-grant.js";
import type { MemberAcquisition } from "./member-acquisition.js";
import { actingOwner, callFor, giveBack, isHeldByOwner, type MemberRequest } from "./member-requests.js";
import type { Members } from "./members.js";
import { assertNotItself } from "./namesakes.js";

/** Of a lease that may be over when the last member is granted, and milliseconds at most. */
const SHARE_OF_LEASE = 1 / 100;
const MOST_OF_LEASE = 50;
/** A lease of so many `commandTimeout`s outlives what follows the first grant: the tries for the others, and a lease anew. */
const LONG = 3;
/** Milliseconds of the longest pause after rounds that were lost, so that two calls do not go on refusing each other. */
const LONGEST_PAUSE = 16;

export class AllOrNone {
  readonly #members: Members;
  readonly #requests: readonly MemberRequest[];
  readonly #request: OwnedRequest;
  readonly #wait: Wait;
  /** Ends what the call waits for inside the engines. */
  readonly #ending = new AbortController();
  readonly #begun: number;
  readonly #arbiter: Arbiter;
  readonly #contestant: Contestant;
  #taken: (readonly [request: MemberRequest, grant: Grant])[] = [];
  /** With which members are taken; undefined where the watchdog is to keep them until the last one is granted. */
  readonly #lease: number | undefined;
  /** Nobody takes what is granted from here on. */
  #over = false;
  #round = 0;
  /** Whether the `waiting` event was sent. */
  #announced = false;

  constructor(members: Members, requests: readonly MemberRequest[], request: OwnedRequest) {
    this.#members = members;
    this.#requests = requests;
    this.#request = request;
    const { clock, envs } = members;
    this.#begun = clock.mono();
    // A grant that replicas acknowledge may take longer.
    const isLong = envs.every(
      ({ settings, replicas }) => !replicas && (request.lease ?? 0) >= LONG * settings.commandTimeout,
    );
    this.#lease = isLong ? request.lease : undefined;
    // Time is measured out to each step: whoever waits inside an engine is told there what a time-out means.
    this.#wait = new Wait({ clock, wait: Number.POSITIVE_INFINITY, signal: request.signal });
    this.#arbiter = members.engine.arbiter;
    this.#contestant = {
      keys: new Set(members.all.map(({ backend }) => backend.key)),
      since: this.#begun,
      wait: this.#wait,
      clock,
    };
  }

  /** Undefined if `wait` was not enough. */
  async collect(): Promise<GroupGrant | undefined> {
    const wait = this.#wait;
    const left = this.#members.envs.map(({ engine }) =>
      engine.join(this.#members.name, (reason) => wait.end(reason)),
    );
    try {
      return (await this.#rounds()) ? await this.#conclude() : undefined;
    } catch (error) {
      this.#over = true;
      this.#ending.abort(error);
      const returned = this.#giveBack();
      if (!wait.ended) await returned;
      throw error;
    } finally {
      this.#arbiter.gone(this.#contestant);
      wait.dispose();
      for (const leave of left) leave();
    }
  }

  /** Milliseconds that the call may still take; one that does not wait may take as long as its commands may. */
  get #left(): number {
    const { wait } = this.#request;
    return wait === 0 ? Number.POSITIVE_INFINITY : wait - (this.#members.clock.mono() - this.#begun);
  }

  /** True once all members are taken. */
  async #rounds(): Promise<boolean> {
    // An owner that holds all of them already re-enters them together, and before whatever it calls next.
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
        this.#arbiter.lost(this.#contestant);
        await this.#wait.park(Math.min(this.#left, this.#pause()));
      }
    }
  }

  get #isHeldUp(): boolean {
    // Those it would let pass may be waiting for what its owner has.
    if (this.#requests.some(isHeldByOwner)) return false;
    return this.#request.wait > 0 && this.#left > 0 && this.#arbiter.holdsUp(this.#contestant);
  }

  #letOthersPass(): Promise<void> {
    this.#announce();
    return this.#arbiter.awaitTurn(this.#contestant, this.#left);
  }

  /** The first member is waited for in its own line, with its own order. */
  #await(request: MemberRequest): Promise<Grant | undefined> {
    const { wait } = this.#request;
    const { engine } = request.member.env;
    const left = wait === 0 ? 0 : Math.max(1, this.#left);
    const { signal } = this.#ending;
    return this.#take(request, (call) => engine.acquire(call, left, signal, this.#announced));
  }

  /** All others at once; resolves with the first that was refused. */
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

  /** A call that has waited before survives an outage. */
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

  /** All that the call took, the last first; resolves when that is done, or the call's time is over. */
  async #giveBack(): Promise<void> {
    const returned = this.#taken.reverse().map(([request, grant]) => quietly(giveBack(request, grant)));
    this.#taken = [];
    if (this.#wait.ended || returned.length === 0) return;
    void Promise.all(returned).then(() => this.#wait.resume());
    await this.#wait.park(Math.max(0, this.#left));
  }

  /** Whom to wait for: who waits for the read side of a lock whose write side it wants too would be refused that. */
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

  /** Gives all members the lease, for as long as the call may take, and each command. False if it had waited, and its time is over. */
  async #limit(grants: readonly Grant[], lease: number): Promise<boolean> {
    const { runner, name } = this.#members;
    const shortened = Promise.all(grants.map((grant) => limit(grant, lease)));
    const within = Math.max(1, this.#left);
    try {
      await this.#wait.during(runner.withTimeout(name, shortened, within));
      return true;
    } catch (error) {
      if (this.#wait.ended || within >= runner.commandTimeout || !this.#mayPass(error)) throw error;
      await this.#giveBack();
      return this.#late();
    }
  }

  /** Whether the lease that members were taken with is as good as whole. */
  #isWhole(grants: readonly Grant[]): boolean {
    const lease = this.#lease;
    if (lease === undefined) return false;
    const now = instant(this.#members.clock);
    const whole = lease - Math.min(lease * SHARE_OF_LEASE, MOST_OF_LEASE);
    return grants.every((grant) => grant.serverLeftAt(now) >= whole);
  }

  /** The lease begins now that the last member is granted, unless each was taken with it just now. */
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
