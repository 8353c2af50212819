/** The members of a group of locks: their order, how many of them make a hold, and what events call the group. */
import type { LockError } from "../base/errors.js";
import type { Details, LockEventName, LockKind } from "../base/events.js";
import type { Traits } from "../base/traits.js";
import type { Env } from "../env.js";
import type { Kind } from "../kinds/kind.js";
import { kindOf } from "../lock/lock.js";
import type { OwnerRecord } from "../owner/record.js";
import type { Wanted } from "../waiting/wanted.js";

/** Whether the member's server gives no answer, so that waiting for it is no use. */
export function isUnresponsive({ env, key }: Kind): boolean {
  return env.runner.servers.isAway(key);
}

/** A lock is its client, name and side. */
function nameOf({ lockKey, side }: Kind): string {
  return `${lockKey}/${side}`;
}

/** By full name, and the write side before the read side; equal members stay as given. */
function inOrder(a: Kind, b: Kind): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return Number(b.side === "write") - Number(a.side === "write");
}

/** Those of a MultiLock: all of them make a hold, and each is waited for as if it were alone. */
export class Members implements Wanted {
  readonly kind: LockKind;
  /** As given. */
  readonly given: readonly Kind[];
  /** In the one order that all groups share. */
  readonly parts: readonly Kind[];
  /** How many of the members make a hold of the group. */
  readonly quorum: number;
  /** The first member's client: the group's own times are read off its clock. */
  readonly env: Env;
  /** The members' names joined by ",". */
  readonly lockName: string;
  /** The name under which owners know the group. */
  readonly lockKey: string;
  /** The first member's. */
  readonly key: string;
  readonly traits: Traits;
  readonly side = "only";
  /** Those of the members. */
  readonly memberKeys: readonly string[];
  /** Of the members' clients, each once. */
  readonly envs: readonly Env[];

  /** @throws TypeError for no lock, for what is not a lock of a LockClient, and for the same lock twice */
  constructor(locks: readonly unknown[], kind: LockKind = "multi", quorum: number = locks.length) {
    const all = locks.map((lock) => {
      const ofMember = kindOf(lock);
      if (ofMember) return ofMember;
      throw new TypeError("a member must be a lock of a LockClient; of a read-write lock, one of its sides");
    });
    const [first] = all;
    if (!first) throw new TypeError("a group of locks needs at least one");
    if (new Set(all.map(nameOf)).size < all.length) throw new TypeError("the same lock is a member twice");
    this.kind = kind;
    this.given = all;
    this.parts = [...all].sort(inOrder);
    this.quorum = quorum;
    this.env = first.env;
    this.lockName = all.map(({ lockName }) => lockName).join(",");
    this.key = first.key;
    this.lockKey = `${kind}${JSON.stringify(this.parts.map(nameOf))}`;
    this.traits = { shared: all.every(({ traits }) => traits.shared) };
    this.memberKeys = this.parts.map(({ lockKey }) => lockKey);
    this.envs = [...new Set(all.map(({ env }) => env))];
  }

  get siteName(): string {
    return this.lockKey;
  }

  /** Each member announces on its own; nothing does here. */
  get channel(): string {
    return this.lockKey;
  }

  /** @throws CLIENT_CLOSED if the client of any member is closed */
  assertOpen(): void {
    for (const env of this.envs) env.assertOpen(this.lockName);
  }

  /** Whether the owner has enough of the members for a hold. */
  areHeldBy(owner: OwnerRecord): boolean {
    return this.memberKeys.filter((key) => owner.grantOf(key)).length >= this.quorum;
  }

  /** The group's value, given the value of each member: the best one that a quorum of members reaches. */
  best(values: readonly number[]): number {
    return [...values].sort((a, b) => b - a)[this.quorum - 1] ?? 0;
  }

  /** The commands that this tick sends for members of one client travel together. */
  gather(): void {
    if (this.envs.length === this.parts.length) return;
    for (const { runner } of this.envs) runner.sender.gather();
  }

  /** Emits an event on every member's client. */
  emit<E extends LockEventName>(event: E, details: Details<E>): void {
    for (const { events } of this.envs) events.emit(event, details, this);
  }

  /** Resolves when members can be asked; undefined if they can be at once. */
  connecting(): Promise<unknown> | undefined {
    return undefined;
  }

  /** Bounds the time for one member's answer to a question. */
  inTime<T>(_member: Kind, answer: Promise<T>): Promise<T> {
    return answer;
  }

  /** The error of a question with too few answers; `inFavour`: how many of these were yes. */
  unanswered(_inFavour: number, errors: readonly unknown[]): unknown {
    return errors[0];
  }
}

/** The outcome of a promise; undefined while the promise is open. */
export type Vote<T = unknown> = PromiseSettledResult<T> | undefined;

/** Resolves with the outcomes so far, once `enough` says so of how many are done and have failed, or all are settled. */
export function votes<T>(
  promises: readonly Promise<T>[],
  enough: (done: number, failed: number, so: readonly Vote<T>[]) => boolean,
): Promise<readonly Vote<T>[]> {
  return new Promise((resolve) => {
    const so: Vote<T>[] = promises.map(() => undefined);
    let [done, failed, isOpen] = [0, 0, true];
    const note = (i: number, vote: PromiseSettledResult<T>) => {
      // Who asked has the list already.
      if (!isOpen) return;
      so[i] = vote;
      if (vote.status === "fulfilled") done++;
      else failed++;
      if (done + failed < so.length && !enough(done, failed, so)) return;
      isOpen = false;
      resolve(so);
    };
    for (const [i, promise] of promises.entries()) {
      promise.then(
        (value) => note(i, { status: "fulfilled", value }),
        (reason: unknown) => note(i, { status: "rejected", reason }),
      );
    }
  });
}

export function fulfilled<T>(so: readonly Vote<T>[]): T[] {
  return so.flatMap((vote) => (vote?.status === "fulfilled" ? [vote.value] : []));
}

export function rejected(so: readonly Vote[]): unknown[] {
  return so.flatMap((vote): unknown[] => (vote?.status === "rejected" ? [vote.reason] : []));
}

/** Adds the errors of a group's members to the error that stands for all of them. */
export function withErrors<E extends LockError>(error: E, errors: unknown[]): E {
  Object.defineProperty(error, "errors", { value: errors, configurable: true });
  return error;
}
