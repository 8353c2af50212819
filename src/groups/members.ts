/** The members of a group of locks: their order, how many of them make a hold, and what events call the group. */
import { type LockError, tellCaller } from "../base/errors.js";
import type { Details, Identified, LockEventName, LockKind } from "../base/events.js";
import type { Env } from "../env.js";
import type { Kind } from "../kinds/kind.js";
import { kindOf, Lock } from "../lock/lock.js";
import type { OwnerRecord } from "../owner/owner.js";
import { Wanted } from "../waiting/wanted.js";

/** Whether the member's server gives no answer, so that waiting for it is no use. */
export function isUnresponsive({ env, key }: Kind): boolean {
  return env.runner.servers.isAway(key);
}

/** A lock is its client, name and side. */
function nameOf({ lockKey, traits }: Kind): string {
  return `${lockKey}/${traits.side}`;
}

/** By full name, and the write side before the read side; equal members stay as given. */
function inOrder(a: Kind, b: Kind): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return Number(b.traits.side === "write") - Number(a.traits.side === "write");
}

/** Those of a MultiLock: all of them make a hold, and each is waited for as if it were alone. */
export class Members extends Wanted {
  override readonly kind: LockKind;
  /** As given. */
  readonly given: readonly Kind[];
  readonly #inOrder: readonly Kind[];
  readonly #envs: readonly Env[];
  /** How many of the members make a hold of the group. */
  readonly quorum: number;
  /** The name under which owners know the group. */
  readonly lockKey: string;
  /** Those of the members. */
  readonly turnKeys: readonly string[];

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
    const names = all.map(({ lockName }) => lockName);
    // The group's own times are read off the clock of the first member's client.
    const shared = all.every(({ traits }) => traits.shared);
    super(first.env, names.join(","), first.key, { side: "only", shared });
    this.kind = kind;
    this.given = all;
    this.#inOrder = [...all].sort(inOrder);
    this.#envs = [...new Set(all.map(({ env }) => env))];
    this.quorum = quorum;
    this.lockKey = `${kind}${JSON.stringify(this.parts.map(nameOf))}`;
    this.turnKeys = this.parts.map(({ lockKey }) => lockKey);
  }

  /** In the one order that all groups share. */
  override get parts(): readonly Kind[] {
    return this.#inOrder;
  }

  override get envs(): readonly Env[] {
    return this.#envs;
  }

  override get siteName(): string {
    return this.lockKey;
  }

  /** Each member announces on its own; nothing does here. */
  override get channel(): string {
    return this.lockKey;
  }

  /** @throws CLIENT_CLOSED if the client of any member is closed */
  assertOpen(): void {
    for (const env of this.envs) env.assertOpen(this.lockName);
  }

  /** Whether the owner has enough of the members for a hold. */
  areHeldBy(owner: OwnerRecord): boolean {
    return this.turnKeys.filter((key) => owner.grantOf(key)).length >= this.quorum;
  }

  /** The group's value, given the value of each member: the best one that a quorum of members reaches. */
  best(values: readonly number[]): number {
    return [...values].sort((a, b) => b - a)[this.quorum - 1] ?? 0;
  }

  /** On each of its clients. */
  override emit<E extends LockEventName>(event: E, details: Details<E>, of?: Identified): void {
    for (const { events } of this.envs) events.emit(event, details, this, of);
  }

  /** The commands that this tick sends for members of one client travel together. */
  gather(): void {
    if (this.envs.length === this.parts.length) return;
    for (const { runner } of this.envs) runner.sender.gather();
  }

  /** The answers of enough members. @throws {@link undecided} */
  async ask<T>(question: Question<T>): Promise<Outcomes<T>> {
    const given = await outcomes(this.parts.map((member) => question(new Lock(member), member)));
    return given.values.length < this.quorum ? tellCaller(this.undecided(given)) : given;
  }

  /** The error of a question that is not decided by these answers. */
  undecided({ errors }: Outcomes<unknown>): unknown {
    return errors[0];
  }
}

/** What each member is asked, by its lock. */
export type Question<T> = (lock: Lock, member: Kind) => Promise<T>;

/** What promises have come to, in the order in which they were settled. */
export interface Outcomes<T> {
  readonly values: readonly T[];
  readonly errors: readonly unknown[];
}

/** Resolves once `enough` promises have succeeded, or all are settled. */
export function outcomes<T>(
  promises: readonly Promise<T>[],
  enough: number = promises.length,
): Promise<Outcomes<T>> {
  const values: T[] = [];
  const errors: unknown[] = [];
  return new Promise((resolve) => {
    const note = <O>(list: O[], outcome: O) => {
      list.push(outcome);
      if (values.length >= enough || values.length + errors.length === promises.length) {
        resolve({ values, errors });
      }
    };
    for (const promise of promises) {
      promise.then(
        (value) => note(values, value),
        (error: unknown) => note(errors, error),
      );
    }
  });
}

/** Adds the errors of a group's members to the error that stands for all of them. */
export function withErrors<E extends LockError>(error: E, errors: readonly unknown[]): E {
  Object.defineProperty(error, "errors", { value: errors, configurable: true });
  return error;
}
