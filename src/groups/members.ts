/** The members of a group of locks, and what the group is called. */
import type { Clock } from "../base/clock.js";
import type {
  CallLimits,
  Events,
  LockEvent,
  LockEventName,
  LockEvents,
  LockKind,
  ToldHold,
} from "../base/events.js";
import { foremost } from "../base/holder.js";
import type { Acquisition, Successor } from "../engine/acquisition.js";
import type { Engine } from "../engine/engine.js";
import type { Handoff as Decision } from "../engine/handoff-policy.js";
import type { BareCalls } from "../locks/bare-calls.js";
import type { Env } from "../locks/env.js";
import { successorBy } from "../locks/handoff.js";
import type { HoldRecord } from "../locks/hold-record.js";
import { type Lock, type LockParts, partsOf } from "../locks/lock.js";
import { follow } from "../locks/telling.js";
import type { CommandRunner } from "../redis/command-runner.js";

/** One lock of a group. */
export interface Member extends LockParts {
  readonly env: Env;
  readonly lock: Lock;
}

/** Whether the member's server gives no answer, so that waiting for it is no use. */
export function isUnresponsive({ env, backend }: Member): boolean {
  return env.runner.servers.isUnresponsive(backend.key);
}

/** Whether a call has to wait for this member in its line, or for its server, longer than a round takes. */
function needsCare(member: Member): boolean {
  const { env, backend } = member;
  const { serverQueued, advertised } = backend.traits;
  if (serverQueued || advertised || env.replicas) return true;
  return isUnresponsive(member) || env.engine.isWanted(backend.queueName);
}

/** With so many late votes still to come, a server is asked for no more. */
const MOST_OVERDUE = 8;

/** Whether a majority goes without this member's vote: commands to a server that is away, or far behind, would pile up. */
export function isSpared(member: Member): boolean {
  const { env, backend } = member;
  return isUnresponsive(member) || (env.masters.overdue.get(backend.key) ?? 0) >= MOST_OVERDUE;
}

/** The members of `locks`, as given. @throws TypeError */
export function checkMembers(locks: readonly unknown[]): readonly Member[] {
  if (locks.length === 0) throw new TypeError("a group of locks needs at least one");
  const members = locks.map((lock) => {
    const parts = partsOf(lock);
    if (parts) return { ...parts, env: parts.table.env, lock: lock as Lock };
    throw new TypeError("a member must be a lock of a LockClient; of a read-write lock, one of its sides");
  });
  if (new Set(members.map(memberKey)).size < members.length) {
    throw new TypeError("the same lock is a member twice");
  }
  return members;
}

/** A lock is its client, name and side. */
export function memberKey({ key, backend }: Member): string {
  return `${key}/${backend.side}`;
}

/** Lets a call for the group take part in the command that gives this member back. */
export function successorAt(
  call: Acquisition<unknown>,
  member: Member,
  decision: Decision,
): Successor | undefined {
  const { backend, env } = member;
  // A grant that replicas have to acknowledge travels with its WAIT.
  if (!backend.traits.handoff || env.replicas || env.runner.servers.isUnresponsive(backend.key))
    return undefined;
  return successorBy(call, memberKey(member), { env, backend, decision });
}

/** By full name, and the write side before the read side; equal members stay as given. */
function inOrder(one: Member, other: Member): number {
  const [a, b] = [one.backend, other.backend];
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return Number(b.side === "write") - Number(a.side === "write");
}

export class Members {
  readonly kind: LockKind;
  /** As given. */
  readonly all: readonly Member[];
  /** In the one order that all groups share. */
  readonly order: readonly Member[];
  /** In the order of their releases. */
  readonly lastFirst: readonly Member[];
  /** How many of the members make a hold of the group. */
  readonly quorum: number;
  /** Whether no two members are sides of one lock. */
  readonly areApart: boolean;
  /** The members' names joined by ",". */
  readonly name: string;
  /** The key under which an owner keeps its holds of the group. */
  readonly key: string;
  /** Under which owners keep the members. */
  readonly lockKeys: readonly string[];
  /** Of the members' clients, each once. */
  readonly envs: readonly Env[];
  /** Pairs of members of one key that are known to be two locks; there once a call has asked. */
  distinct: Set<string> | undefined;
  readonly #events: readonly Events[];

  constructor(kind: LockKind, members: readonly Member[], quorum: number) {
    this.kind = kind;
    this.all = members;
    this.order = [...members].sort(inOrder);
    this.lastFirst = [...this.order].reverse();
    this.quorum = quorum;
    this.areApart = new Set(members.map(({ key }) => key)).size === members.length;
    this.name = members.map(({ lock }) => lock.name).join(",");
    this.key = `${kind}${JSON.stringify(this.order.map(memberKey))}`;
    this.lockKeys = members.map(({ key }) => key);
    this.envs = [...new Set(members.map(({ env }) => env))];
    this.#events = this.envs.map(({ events }) => events);
  }

  /** The group's own times are read off the first member's clock. */
  get clock(): Clock {
    return (this.envs[0] as Env).clock;
  }

  /** Whether a call has to begin with the first member: all at once, one may be refused or take long, or disturb another. */
  get needCare(): boolean {
    return !this.areApart || this.all.some(needsCare);
  }

  get bareCalls(): BareCalls {
    return (this.all[0] as Member).table.bareCalls;
  }

  /** Whether any member's client notes where holds are taken (`traceHolds`). */
  get traces(): boolean {
    return this.envs.some(({ settings }) => settings.traceHolds);
  }

  get runner(): CommandRunner {
    return (this.envs[0] as Env).runner;
  }

  /** The engine whose queues hold the calls for the group. */
  get engine(): Engine {
    return (this.envs[0] as Env).engine;
  }

  get random(): () => number {
    return (this.envs[0] as Env).settings.random;
  }

  /** @throws CLIENT_CLOSED if the client of any member is closed */
  assertOpen(): void {
    for (const env of this.envs) env.assertOpen(this.name);
  }

  /** @throws UNAVAILABLE if the server of any member is away */
  assertThere(): void {
    const away = this.order.find(({ env, backend }) => env.runner.servers.isAway(backend.key));
    if (away) throw away.env.runner.unavailable(this.name);
  }

  /** Made anew for each event: listeners get the object. */
  get #told(): LockEvent {
    return { lockName: this.name, kind: this.kind };
  }

  /** The commands that this tick sends for members of one client travel together. */
  gather(): void {
    if (this.envs.length === this.all.length) return;
    for (const { runner } of this.envs) runner.sender.gather();
  }

  /** Emits an event on every member's client. */
  emit<E extends LockEventName>(event: E, details: Omit<LockEvents[E], "lockName" | "kind">): void {
    const payload = { ...details, ...this.#told } as LockEvents[E];
    for (const events of this.#events) events.emit(event, payload);
  }

  /** See {@link Events.tellGrant}. */
  tellGrant(group: ToldHold, waited: number, nested: boolean): void {
    for (const events of this.#events) events.tellGrant(this.#told, group, waited, nested);
  }

  /** See {@link Events.tellRelease}. */
  tellRelease(group: ToldHold): void {
    for (const events of this.#events) events.tellRelease(this.#told, group);
  }

  /** See {@link Events.tellEnd}. */
  tellEnd(ownerId: string, limits: CallLimits, waited: number, error?: unknown): void {
    for (const events of this.#events) events.tellEnd({ ...this.#told, ownerId }, limits, waited, error);
  }

  /** From now on, `longHold` is told on every member's client, and the end of the hold on the diagnostics channel, once. */
  follow(group: HoldRecord): void {
    const [first, ...others] = this.envs;
    follow(first as Env, this.#told, group);
    for (const { longHolds } of others) longHolds?.watch(group, this.#told);
  }

  /** The holder of a member, in words for people. A server that is away is not asked. */
  async holder(): Promise<string | undefined> {
    const told = this.envs.map((env) => {
      const locks = this.order.filter((member) => member.env === env && !isUnresponsive(member));
      return env.whoHolds(locks.map(({ lock, backend }) => ({ name: lock.name, key: backend.key })));
    });
    return foremost(await Promise.all(told));
  }

  /** The group's value, given the value of each member: the best value that a quorum of members reaches. Sorts `values`. */
  best(values: number[]): number {
    return values.sort((a, b) => b - a)[this.quorum - 1] ?? 0;
  }
}
