/** The members of a group of locks: their order, their quorum, and what events call the group. */

import type { Clock } from "../base/clock.js";
import type { LockError } from "../base/errors.js";
import type { CallLimits, LockEvent, LockEventName, LockEvents, LockKind } from "../base/events.js";
import { foremost } from "../base/holder.js";
import type { Env } from "../env.js";
import type { Kind } from "../kinds/kind.js";
import { follow } from "../lock/follow.js";
import type { HoldRecord } from "../lock/hold-record.js";
import { kindOf, type Lock } from "../lock/lock.js";
import { withErrors } from "./votes.js";

/** One lock of a group. */
export interface Member {
  readonly lock: Lock;
  readonly kind: Kind;
  readonly env: Env;
}

/** Whether the member's server gives no answer, so that waiting for it is no use. */
export function isUnresponsive({ env, kind }: Member): boolean {
  return env.runner.servers.isUnresponsive(kind.key);
}

/** A lock is its client, name and side. */
function nameOf({ kind }: Member): string {
  return `${kind.lockKey}/${kind.side}`;
}

/** By full name, and the write side before the read side; equal members stay as given. */
function inOrder({ kind: a }: Member, { kind: b }: Member): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return Number(b.side === "write") - Number(a.side === "write");
}

export class Members {
  readonly kind: LockKind;
  /** As given. */
  readonly all: readonly Member[];
  /** In the one order that all groups share. */
  readonly order: readonly Member[];
  /** How many of the members make a hold of the group. */
  readonly quorum: number;
  /** The members' names joined by ",". */
  readonly name: string;
  /** The key under which owners know the group. */
  readonly key: string;
  /** Of the members' clients, each once. */
  readonly envs: readonly Env[];

  /** @throws TypeError for no lock, for what is not a lock of a LockClient, and for the same lock twice */
  constructor(kind: LockKind, locks: readonly unknown[], quorum: number) {
    if (locks.length === 0) throw new TypeError("a group of locks needs at least one");
    this.kind = kind;
    this.all = locks.map((lock) => {
      const ofMember = kindOf(lock);
      if (ofMember) return { lock: lock as Lock, kind: ofMember, env: ofMember.env };
      throw new TypeError("a member must be a lock of a LockClient; of a read-write lock, one of its sides");
    });
    if (new Set(this.all.map(nameOf)).size < locks.length) {
      throw new TypeError("the same lock is a member twice");
    }
    this.order = [...this.all].sort(inOrder);
    this.quorum = quorum;
    this.name = this.all.map(({ lock }) => lock.name).join(",");
    this.key = `${kind}${JSON.stringify(this.order.map(nameOf))}`;
    this.envs = [...new Set(this.all.map(({ env }) => env))];
  }

  get first(): Member {
    return this.all[0] as Member;
  }

  /** The group's own times are read off the first member's clock. */
  get clock(): Clock {
    return this.first.env.clock;
  }

  /** Made anew for each event: listeners get the object. */
  get about(): LockEvent {
    return { lockName: this.name, kind: this.kind };
  }

  /** @throws CLIENT_CLOSED if the client of any member is closed */
  assertOpen(): void {
    for (const env of this.envs) env.assertOpen(this.name);
  }

  /** The group's value, given the value of each member: the best one that a quorum of members reaches. */
  best(values: readonly number[]): number {
    return [...values].sort((a, b) => b - a)[this.quorum - 1] ?? 0;
  }

  /** The commands that this tick sends for members of one client travel together. */
  gather(): void {
    if (this.envs.length === this.all.length) return;
    for (const { runner } of this.envs) runner.sender.gather();
  }

  /** Emits an event on every member's client. */
  emit<E extends LockEventName>(event: E, details: Omit<LockEvents[E], "lockName" | "kind">): void {
    for (const { events } of this.envs) events.emit(event, { ...details, ...this.about } as LockEvents[E]);
  }

  tellGrant(hold: HoldRecord, waited: number, nested: boolean): void {
    for (const { events } of this.envs) events.tellGrant(this.about, hold, waited, nested);
  }

  tellRelease(hold: HoldRecord): void {
    for (const { events } of this.envs) events.tellRelease(this.about, hold, hold.heldFor);
  }

  tellEnd(ownerId: string, limits: CallLimits, waited: number, error: unknown): void {
    for (const { events } of this.envs) events.tellEnd({ ...this.about, ownerId }, limits, waited, error);
  }

  /** From now on `longHold` is told on every member's client, and the end of the hold on the diagnostics channel, once. */
  follow(hold: HoldRecord): void {
    follow(this.first.env, this.about, hold);
    for (const { longHolds } of this.envs.slice(1)) longHolds?.watch(hold, this.about);
  }

  /** The holder of a member, in words for people. A server that is away is not asked. */
  async holder(): Promise<string | undefined> {
    const told = this.envs.map((env) => {
      const asked = this.order.filter((member) => member.env === env && !isUnresponsive(member));
      return env.whoHolds(asked.map(({ lock, kind }) => ({ name: lock.name, key: kind.key })));
    });
    return foremost(await Promise.all(told));
  }

  /** The error of a call whose time is up while servers are away; undefined if all answer. */
  nobodyAnswered(): LockError | undefined {
    const errors = this.all.filter(isUnresponsive).map(({ env }) => env.runner.unavailable(this.name));
    return errors[0] && withErrors(errors[0], errors);
  }
}
