/** Calm schedules of locks: the outcome of each call, who is inside until when, and whose turn it is. */
import type { FencedHold, Lock, Hold as RealHold, Owner as RealOwner } from "../../../src/index.js";
import { injected } from "../planting.js";
import { type Call, Course, compare, NAME, pick, WATCHDOG, within } from "./course.js";
import { type Hold, Holds, newOwner, type Owner, type Side } from "./holds.js";
import { type By, type CalmSchedule, type CalmStep, CLIENTS } from "./steps.js";

/** Milliseconds after which a waiter behind one of its own process tells the server of itself. */
const MOMENT = 15;
/** Milliseconds after which a lock that is wanted elsewhere leaves a process, with the hold that is open then. */
const LONGEST_TURN = 50;
const OWNERS = 2;
const NOBODYS = { client: -1, since: 0 };
/** The client id of processes that are dead. */
const DEAD = "00000000-0000-4000-8000-000000000000";

/** Who calls, and how. */
interface Party {
  readonly owner: Owner;
  /** The option `owner`. */
  readonly option: RealOwner | RealHold | undefined;
  readonly within: <T>(call: () => Promise<T>) => Promise<T>;
  readonly text: string;
}

export class Locks extends Course {
  readonly #holds = new Holds(this);
  readonly #kind: CalmSchedule["kind"];
  readonly #preferWriters: boolean;
  readonly #sides: readonly Side[];
  readonly #owners: readonly Owner[];
  readonly #ofWireId = new Map<string, Owner>();
  /** Holds that a `lock.unlock()` gave back: what their own `unlock()` answers is open. */
  readonly #byLock = new Set<Hold>();
  /** The client in which the lock goes from hand to hand, and since when. */
  #turn = NOBODYS;
  /** Until when the holds of readers last whose processes are dead. */
  #dead: number[] = [];
  #asked = 0;
  #token = 0n;

  constructor(schedule: CalmSchedule, isRead = false) {
    super(schedule, isRead);
    this.#kind = schedule.kind;
    this.#preferWriters = schedule.seed % 2 === 0;
    this.#sides = schedule.kind === "calm-readwrite" ? ["read", "write"] : ["only"];
    this.#owners = Array.from({ length: CLIENTS * OWNERS }, (_, i) => {
      return newOwner(i % CLIENTS, this.ownerOf(i % CLIENTS, Math.floor(i / CLIENTS)));
    });
    for (let client = 0; client < CLIENTS; client++) {
      this.clientOf(client).on("renewed", ({ ownerId = "" }) => {
        this.note(`${ownerId} is renewed`, "renewed");
        const owner = this.#ofWireId.get(ownerId);
        if (owner) this.#holds.renew(owner);
      });
    }
  }

  // Steps

  protected act(step: CalmStep): boolean {
    const { client, place, any, ms } = step;
    if (step.do === "unlock") return this.#unlock(step);
    if (step.do === "giveBack") return this.#giveBack(pick(any ? this.#holds.all : this.#holds.held, place));
    if (step.do === "extend") return this.#extend(this.#preferHeld(place), ms);
    if (step.do === "force") return this.#force(client, this.#side(place));
    if (step.do === "vanish") return this.#vanish();
    if (step.do === "dies") return this.#dies(Math.min(ms, 30_000));
    return this.#ask(step);
  }

  #ask(step: CalmStep): boolean {
    const party = this.#party(step.client, step.by);
    if (!party) return false;
    const { owner, option, text } = party;
    const side = this.#side(step.place);
    const { live, held } = this.#holds;
    const isElsewhere = (other: { side: Side; owner: Owner }) => other.owner === owner && other.side !== side;
    // Whether such a call is refused depends on what the owner knows by then.
    if (this.waiting.some(isElsewhere) || held.some((hold) => hold.gone && isElsewhere(hold))) return false;
    // A call that is given up at once may have no answer that tells of a loss.
    if (!step.hasty) this.#holds.tell(owner, side);
    const mine = this.#holds.of(owner, live);
    const isUpgrade = side === "write" && mine.length > 0 && mine.every((hold) => hold.side === "read");
    const { wait = step.do === "lock" ? Number.POSITIVE_INFINITY : 0, lease } = step;
    const controller = new AbortController();
    const call = {
      ...{ serial: this.#asked++, owner, side, lease, isUpgrade, wait, controller },
      ...{ client: owner.client, begun: this.now, isPending: true },
    };
    if (step.hasty && mine.length > 0 && !isUpgrade) this.#holds.stray(call);
    const lock = this.#lock(owner.client, side);
    const options = { signal: call.controller.signal, owner: option };
    const asked = party.within((): Promise<RealHold | null> => {
      if (step.do === "tryLock") return lock.tryLock(step.wait, lease, options);
      return lock.lock({ wait: step.wait, lease, ...options });
    });
    return this.wait(
      `${step.do}(${side}, wait ${wait}, lease ${lease}) by ${text}`,
      call,
      injected.granted(asked).then((hold) => hold ?? false),
      (hold) => this.#granted(call, hold),
    );
  }

  #granted(call: Call, real: RealHold): void {
    const { owner, isUpgrade, lease } = call;
    if (isUpgrade) this.fail("an upgrade is granted");
    const isNested = this.#holds.of(owner).length > 0;
    if (isNested) this.note(`it is nested, with lease ${lease}`, "nested");
    const known = this.#ofWireId.get(real.ownerId);
    if (known && (known !== owner || !isNested)) this.fail(`${real.ownerId} is used again`);
    this.#ofWireId.set(real.ownerId, owner);
    const { token = this.#token } = real as Partial<FencedHold>;
    const isRight = isNested || this.#kind !== "calm-fenced" ? token === this.#token : token > this.#token;
    if (!isRight) this.fail(`token ${token} comes after ${this.#token}`);
    this.#token = token;
    if (this.#turn.client !== call.client) this.#turn = { client: call.client, since: this.now };
    const hold = this.#holds.add(call, real);
    real.signal.addEventListener("abort", () => this.#lost(hold));
  }

  #lost(hold: Hold): void {
    const { reason } = hold.real.signal.reason as { reason: string };
    this.note(`${this.#holds.nameOf(hold)} is lost: ${reason}`, `lost, ${reason}`);
    this.#holds.lose(hold, reason);
    this.#turn = NOBODYS;
    // It may have ended on the server without a message.
    this.quiet(hold.owner.lapses);
  }

  #unlock({ client, place, by }: CalmStep): boolean {
    const party = this.#party(client, by);
    // What a bare hold's owner gives back by the lock is open.
    if (!party || (by.as === "hold" && !party.owner.real)) return false;
    const { owner, option, text } = party;
    const side = this.#side(place);
    const hold = owner.stacks[side].at(-1);
    const expected = hold ? this.#holds.unlock(hold) : "NOT_OWNER";
    if (hold) this.#byLock.add(hold);
    const lock = this.#lock(owner.client, side);
    const unlocking = party.within(() => lock.unlock({ owner: option }));
    return this.expect(`unlock(${side}) by ${text}`, unlocking, expected);
  }

  #giveBack(hold: Hold | undefined): boolean {
    if (!hold) return false;
    const also = this.#byLock.has(hold) ? ["NOT_OWNER"] : [];
    const expected = this.#holds.unlock(hold);
    const name = this.#holds.nameOf(hold);
    this.expect(`${name}.unlock()`, hold.real.unlock(), expected, ...also);
    if (hold.real.isHeld) this.fail(`${name} is held after its unlock was called`);
    return true;
  }

  #extend(hold: Hold | undefined, lease: number): boolean {
    const expected = hold && this.#holds.extend(hold, lease);
    if (!hold || expected === undefined) return false;
    return this.expect(`${this.#holds.nameOf(hold)}.extend(${lease})`, hold.real.extend(lease), expected);
  }

  #force(client: number, side: Side): boolean {
    const { live } = this.#holds;
    const isOnBoth = live.some((a) => live.some((b) => a.owner === b.owner && a.side !== b.side));
    // What is left of an owner on both sides is open.
    if (this.closed.has(client) || isOnBoth || this.#holds.mayStray()) return false;
    const taken = live.filter((hold) => hold.side === side);
    const reasons = ({ owner }: Hold) =>
      owner.client === client ? ["forced"] : ["forced", "taken", "expired"];
    this.#holds.take(taken, reasons);
    this.#turn = NOBODYS;
    const isForced = taken.length > 0 || (side === "read" && this.#deadLeft > 0);
    if (side === "read") this.#dead = [];
    const forcing = this.#lock(client, side).forceUnlock();
    return this.expect(`forceUnlock(${side}) by client ${client}`, forcing, isForced);
  }

  /** A process has died as it read: its hold is there, and nobody renews it. */
  #dies(lease: number): boolean {
    if (this.#holds.live.some(({ side }) => side === "write")) return false;
    this.note(`a reader is dead, with ${lease} ms left`);
    const wireId = `${DEAD}:${this.#dead.push(this.now + lease)}`;
    this.server.execute(["HSET", NAME, "mode", "read", wireId, "1"]);
    this.server.execute(["SET", `{${NAME}}:${wireId}:rwlock_timeout:1`, "1", "PX", String(lease)]);
    if (this.server.keys.ttl(NAME) < lease) this.server.execute(["PEXPIRE", NAME, String(lease)]);
    this.quiet(this.now + lease);
    return true;
  }

  /** How long the dead keep the lock, in milliseconds. */
  get #deadLeft(): number {
    return Math.max(0, ...this.#dead.map((until) => until - this.now));
  }

  /** Another program deletes the keys of the lock, or a failover loses them. */
  #vanish(): boolean {
    this.note("the keys of the lock are lost");
    this.#turn = NOBODYS;
    this.#dead = [];
    this.#holds.take(this.#holds.live, () => ["expired", "taken", "forced"]);
    this.quiet();
    const { keys } = this.server;
    for (const key of keys.scan(0, 100).keys)
      if (key === NAME || key.includes(":rwlock_timeout:")) keys.delete(key);
    return true;
  }

  protected override closing(client: number): void {
    const held = this.#holds.held.filter(({ owner }) => owner.client === client);
    this.#holds.take(held, () => ["closed"]);
    for (const { owner, side } of held) this.#holds.tell(owner, side);
  }

  protected override ending(): void {
    for (const hold of this.#holds.held.reverse()) this.#giveBack(hold);
  }

  // The rules of the kinds

  protected override get due(): number[] {
    const due = this.#holds.held.flatMap(({ owner: { ends, lapses, mayLapse, renewed } }) => [
      ...[ends, lapses, mayLapse, renewed, lapses - (2 / 3) * WATCHDOG],
    ]);
    return [...due, ...this.#dead];
  }

  protected isFree({ owner, side, isUpgrade }: Call): boolean {
    const isRival = (hold: Hold) => hold.owner !== owner && !(hold.side === "read" && side === "read");
    // An upgrade has to be refused at once, whoever else is there.
    const isClosed = this.#holds.live.some(isRival) || (side === "write" && this.#deadLeft > 0);
    return isUpgrade || !isClosed;
  }

  /** The waiters of other kinds have no order that is promised. */
  protected override goesBefore(other: Call, call: Call): boolean {
    if (other.owner === call.owner || this.#holds.of(call.owner).length > 0) return false;
    if (this.#outstays(other, call)) return true;
    const isTold = other.client === call.client || call.begun - other.begun > MOMENT;
    return isTold && other.serial < call.serial && this.#mayGoBefore(other, call);
  }

  /** Whether the lock goes from hand to hand in a process, when it should leave that for another one. */
  #outstays(other: Call, call: Call): boolean {
    // Others whose connections have been lost may be deaf for that long.
    if (this.isDisturbed) return false;
    const { client, since } = this.#turn;
    const isHandedOn = call.client === client && call.begun < this.now && /lock|fenced/.test(this.#kind);
    const wanted = this.now - Math.max(since, other.begun);
    return isHandedOn && other.client !== client && wanted > LONGEST_TURN + this.slack;
  }

  protected override holdsUp(other: Call, call: Call): boolean {
    if (this.#holds.of(call.owner).length > 0) return false;
    return this.#mayGoBefore(other, call) && (this.#kind !== "calm-fair" || other.serial < call.serial);
  }

  #mayGoBefore(other: Call, call: Call): boolean {
    if (this.#kind === "calm-fair") return true;
    return this.#preferWriters && other.side === "write" && call.side === "read";
  }

  protected override atRest(): void {
    this.#holds.rest();
  }

  protected override lasts(key: string): boolean {
    return /^redisson_lock_token/.test(key) || (this.waiting.length > 0 && /_lock_(queue|timeout)/.test(key));
  }

  // What is to be seen

  protected async differences(turn: number): Promise<string[]> {
    const found = this.#holds.all.flatMap((hold) => this.#ofHold(hold));
    const { live } = this.#holds;
    const exists = this.server.keys.typeOf(NAME) !== undefined;
    found.push(...compare("whether the lock's key exists", exists, live.length > 0 || this.#deadLeft > 0));
    const client = this.open(turn % CLIENTS);
    if (client === undefined) return found;
    const side = this.#side(turn >> 1);
    const [owner] = this.#owners.filter((each) => each.client === client).slice((turn >> 2) % OWNERS);
    const lock = this.#lock(client, side);
    const onSide = live.filter((hold) => hold.side === side);
    const dead = side === "read" ? this.#deadLeft : 0;
    const isOn = onSide.length > 0 || dead > 0;
    const locked = await this.answer("isLocked()", lock.isLocked());
    const ttl = await this.answer("remainTimeToLive()", lock.remainTimeToLive());
    const { least, most } = isOn ? this.#holds.ttl() : { least: -2, most: -2 };
    const slack = isOn ? this.slack : 0;
    const name = `remainTimeToLive(${side})`;
    if (!this.#holds.mayStray(side))
      found.push(
        ...compare(`isLocked(${side})`, locked, isOn),
        ...within(name, ttl, Math.max(least, dead || least) - slack, Math.max(most, dead || most) + slack),
      );
    if (!owner?.real) return found;
    const held = onSide.filter((hold) => hold.owner === owner).length;
    const asked = { owner: owner.real };
    const count = await this.answer("getHoldCount()", lock.getHoldCount(asked));
    const isHeld = await this.answer("isHeldByCurrentOwner()", lock.isHeldByCurrentOwner(asked));
    return [
      ...found,
      ...compare("getHoldCount()", count, held),
      ...compare("whether it is held", isHeld, held > 0),
    ];
  }

  #ofHold(hold: Hold): string[] {
    const { real, state, owner } = hold;
    const name = this.#holds.nameOf(hold);
    const isHeld = state === "held";
    const left = isHeld ? owner.ends - this.now : 0;
    return [
      ...compare(`${name}.isHeld`, real.isHeld, isHeld),
      ...compare(`${name}.signal.aborted`, real.signal.aborted, state === "lost"),
      ...within(`${name}.remaining`, real.remaining, left - this.slack, left + this.slack),
    ];
  }

  // Helpers

  #preferHeld(place: number): Hold | undefined {
    return pick(this.#holds.held, place) ?? pick(this.#holds.all, place);
  }

  #party(client: number, { as, n }: By): Party | undefined {
    const direct: Party["within"] = (call) => call();
    if (as === "hold") {
      const hold = this.#preferHeld(n);
      if (!hold || this.closed.has(hold.owner.client)) return undefined;
      const text = `the owner of ${this.#holds.nameOf(hold)}`;
      return { owner: hold.owner, option: hold.real, within: direct, text };
    }
    if (this.closed.has(client)) return undefined;
    if (as === "bare") return { owner: newOwner(client), option: undefined, within: direct, text: "nobody" };
    const owner = this.#owners.filter((each) => each.client === client)[n] as Owner;
    const real = owner.real as RealOwner;
    if (as === "owner") return { owner, option: real, within: direct, text: `owner ${n}` };
    return { owner, option: undefined, within: (call) => real.scope(call), text: `the scope of owner ${n}` };
  }

  #side(place: number): Side {
    return pick(this.#sides, place) as Side;
  }

  #lock(client: number, side: Side): Lock {
    const real = this.clientOf(client);
    if (this.#kind === "calm-lock") return real.getLock(NAME);
    if (this.#kind === "calm-fair") return real.getFairLock(NAME);
    if (this.#kind === "calm-fenced") return real.getFencedLock(NAME);
    const both = real.getReadWriteLock(NAME, { preferWriters: this.#preferWriters });
    return side === "read" ? both.readLock() : both.writeLock();
  }
}
