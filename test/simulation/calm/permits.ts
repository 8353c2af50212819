/** Calm schedules of a PermitExpirableSemaphore: each permit, its lease and its end. */
import type { PermitExpirableSemaphore } from "../../../src/index.js";
import { type Call, Course, compare, NAME, pick, WATCHDOG, within } from "./course.js";
import { type CalmSchedule, type CalmStep, CLIENTS } from "./steps.js";

interface PermitCall extends Call {
  /** Absent for a permit that the watchdog keeps. */
  readonly lease: number | undefined;
}

interface Permit {
  readonly id: string;
  readonly client: number;
  isKept: boolean;
  /** When it lapses on the server. */
  expires: number;
  state: "held" | "released" | "gone";
  /** Whether its loss was announced, or need not be. */
  isAnnounced: boolean;
}

const LEASES = `{${NAME}}:timeout`;
/** A third of the time is over when a permit is renewed, at the latest. */
const LEAST_KEPT = (2 / 3) * WATCHDOG;

export class Permits extends Course<PermitCall> {
  readonly #permits: Permit[] = [];
  /** The number of free permits, negative after a cut; undefined while none were set. */
  #free: number | undefined;

  constructor(schedule: CalmSchedule, isRead: boolean) {
    super(schedule, isRead);
    for (let client = 0; client < CLIENTS; client++)
      this.clientOf(client).on("lost", ({ permitId = "", reason }) => this.#lost(permitId, reason));
  }

  protected act(step: CalmStep): boolean {
    const at = this.open(step.client);
    const { do: what, n, place, any = false } = step;
    if (at === undefined || (n === 0 && what === "add")) return false;
    const permits = this.#semaphore(at);
    const name = `${what}(${n}) by client ${at}`;
    if (what === "acquire") return this.#ask(at, step);
    if (what === "update") return this.#update(at, this.#pick(place, false, at), step.ms);
    if (what === "add") {
      this.#free = (this.#free ?? 0) + n;
      return this.expect(name, permits.addPermits(n), "ok");
    }
    if (what === "set") {
      this.#free = n - this.#live.length;
      return this.expect(name, permits.setPermits(n), "ok");
    }
    if (what === "trySet") {
      const isFirst = this.#free === undefined;
      this.#free ??= n;
      return this.expect(name, permits.trySetPermits(n), isFirst);
    }
    return this.#release(what as "release" | "tryRelease", at, this.#pick(place, any, at));
  }

  #ask(at: number, { wait, lease }: CalmStep): true {
    const call = { ...this.begin(at, wait ?? Number.POSITIVE_INFINITY), lease };
    const { signal } = call.controller;
    const permits = this.#semaphore(at);
    const made =
      wait === undefined ? permits.acquire({ lease, signal }) : permits.tryAcquire(wait, lease, { signal });
    const acquired = made.then((id) => id ?? false);
    return this.wait(`acquire(wait ${wait}, lease ${lease})`, call, acquired, (id) => this.#add(call, id));
  }

  #add({ client, lease }: PermitCall, id: string): void {
    if (!/^[0-9a-f]{32}$/.test(id)) this.fail(`${id} is no permit id`);
    if (this.#permits.some((permit) => permit.id === id)) this.fail(`${id} is given out again`);
    const expires = this.now + (lease ?? WATCHDOG);
    const isKept = lease === undefined;
    this.#permits.push({ id, client, isKept, expires, state: "held", isAnnounced: true });
    this.#free = (this.#free ?? 0) - 1;
  }

  /** A permit for a client's call; one that the watchdog keeps is given back by its own client only. */
  #pick(place: number, any: boolean, at: number): Permit | undefined {
    const from = any ? this.#permits : this.#live;
    return pick(
      from.filter(({ isKept, client }) => !isKept || client === at),
      place,
    );
  }

  #release(how: "release" | "tryRelease", at: number, permit: Permit | undefined): boolean {
    if (!permit) return false;
    const isHeld = this.#live.includes(permit);
    if (isHeld) this.#end(permit, "released");
    const [yes, no] = how === "tryRelease" ? [true, false] : ["ok", "NOT_OWNER"];
    const made = this.#semaphore(at)[how](permit.id);
    return this.expect(`${how}(${permit.id}) by client ${at}`, made, isHeld ? yes : no);
  }

  /** From then on the watchdog does not keep it. */
  #update(at: number, permit: Permit | undefined, lease: number): boolean {
    if (!permit) return false;
    permit.expires = this.now + lease;
    permit.isKept = false;
    const made = this.#semaphore(at).updateLeaseTime(permit.id, lease);
    return this.expect(`updateLeaseTime(${permit.id}, ${lease}) by client ${at}`, made, true);
  }

  #lost(id: string, reason: string): void {
    this.note(`${id} is lost: ${reason}`, "lost");
    const permit = this.#permits.find((each) => each.id === id);
    if (!permit || permit.isAnnounced) return this.fail(`${id} is lost without a reason`);
    permit.isAnnounced = true;
  }

  /** A closed client gives back what it kept, and announces that. */
  protected override closing(client: number): void {
    for (const permit of this.#live) {
      if (permit.client !== client || !permit.isKept) continue;
      this.#end(permit, "gone");
      permit.isAnnounced = false;
    }
  }

  protected override ending(): void {
    for (const permit of this.#live) {
      const at = permit.isKept ? permit.client : this.open(permit.client);
      if (at !== undefined) this.#release("release", at, permit);
    }
  }

  /** The permits that have not ended: of these, only the leases that were given can lapse. */
  get #live(): Permit[] {
    const held = () => this.#permits.filter(({ state }) => state === "held");
    for (const permit of held()) {
      if (permit.isKept || permit.expires > this.now) continue;
      this.#end(permit, "gone");
      // No message tells of it, but a waiter knows when the first lease ends.
      this.quiet(permit.expires);
    }
    return held();
  }

  #end(permit: Permit, state: "released" | "gone"): void {
    permit.state = state;
    this.#free = (this.#free ?? 0) + 1;
  }

  protected override atRest(): void {
    for (const { id, isAnnounced } of this.#permits)
      if (!isAnnounced) this.fail(`the loss of ${id} is not announced`);
  }

  protected override get moments(): number[] {
    const due = this.#live.flatMap(({ expires, isKept }) => (isKept ? [expires - LEAST_KEPT] : [expires]));
    return [...super.moments, ...due];
  }

  protected isFree(): boolean {
    // The server has whole milliseconds, so to it a lease may just be over.
    const ending = this.#live.filter(({ isKept, expires }) => !isKept && expires <= this.now + this.slack);
    return (this.#free ?? 0) + ending.length > 0;
  }

  /** The leases that a closed client has given out end by themselves, at the next call. */
  protected override lasts(key: string): boolean {
    return key === NAME || key === LEASES;
  }

  protected async differences(turn: number): Promise<string[]> {
    const live = this.#live;
    const terms = new Map<string, number>();
    for (const [member, at] of this.server.keys.get(LEASES, "zset") ?? [])
      terms.set(Buffer.from(member, "latin1").toString("hex"), at - this.server.clock.wall());
    const lapsed = [...terms].filter(([, left]) => left <= 0);
    const found = live.flatMap((permit) => this.#ofPermit(permit, terms.get(permit.id)));
    const number = this.server.keys.get(NAME, "string");
    // A permit whose lease has lapsed is free for the next call.
    const visible = number === undefined ? undefined : Number(number) + lapsed.length;
    found.push(...compare("the number of permits in use", terms.size - lapsed.length, live.length));
    found.push(...compare("the number of free permits", visible, this.#free));
    const at = this.open(turn % 2);
    if (at === undefined) return found;
    const permits = this.#semaphore(at);
    const free = this.#free ?? 0;
    const available = await this.answer("availablePermits()", permits.availablePermits());
    const acquired = await this.answer("acquiredPermits()", permits.acquiredPermits());
    const all = await this.answer("getPermits()", permits.getPermits());
    // The first look takes back what has lapsed, and a waiter may have got that meanwhile.
    if (this.#live.length !== live.length) return found;
    found.push(...compare("availablePermits()", available, free));
    found.push(...compare("acquiredPermits()", acquired, live.length));
    return [...found, ...compare("getPermits()", all, free + live.length)];
  }

  #ofPermit(permit: Permit, left: number | undefined): string[] {
    if (left === undefined) return [`${permit.id} is not there`];
    const expected = permit.expires - this.now;
    const [least, most] = permit.isKept ? [LEAST_KEPT, WATCHDOG] : [expected, expected];
    if (permit.isKept) permit.expires = this.now + left;
    return within(`the time that ${permit.id} has left`, left, least - this.slack, most + this.slack);
  }

  #semaphore(at: number): PermitExpirableSemaphore {
    return this.clientOf(at).getPermitExpirableSemaphore(NAME);
  }
}
