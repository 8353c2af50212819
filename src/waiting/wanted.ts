/** What a call can want and wait for: one side of a lock, the members of a group, permits, the opening of a latch. */
import type { Details, Identified, LockEventName, LockKind } from "../base/events.js";
import type { Env } from "../env.js";

/** A read-write lock has two sides, all other locks have one. */
export type Side = "only" | "read" | "write";

/** How locks, groups of locks and numbers of permits differ for those who wait for them. */
export interface Traits {
  readonly side: Side;
  /** Calls for that side go first. */
  readonly yieldsTo?: Side | undefined;
  /**
   * The server keeps a queue, and wakes each waiter on a channel of its own. Each waiter tries once to get a ticket
   * there, and the tries of the first here refresh all tickets.
   */
  readonly serverQueued?: boolean;
  /** The server has to know the first waiter of each process. */
  readonly advertised?: boolean;
  /** Several can have it at once: a grant to one takes nothing from the others. */
  readonly shared?: boolean;
  /** A release can grant it to the first waiter of this process. */
  readonly passes?: boolean;
}

/** What ends a call that waits. */
export interface Limits {
  /** Milliseconds; 0 for one try, Infinity without limit. */
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  /** Monotonic milliseconds. */
  readonly begun: number;
}

/** Each grant keeps that of its lock, so it stores only what differs from lock to lock. */
export abstract class Wanted {
  readonly env: Env;
  /** As users know it. */
  readonly lockName: string;
  /** In Redis; of a group the first member's. */
  readonly key: string;
  readonly traits: Traits;
  abstract readonly kind: LockKind;
  /** Where releases are announced. */
  abstract readonly channel: string;

  constructor(env: Env, lockName: string, key: string, traits: Traits) {
    this.env = env;
    this.lockName = lockName;
    this.key = key;
    this.traits = traits;
  }

  /** Calls that want the same wait at one site, and get it in order. */
  get siteName(): string {
    return this.siteOf(this.traits.side);
  }

  siteOf(side: Side): string {
    return `${this.kind}/${side}/${this.key}`;
  }

  /** More than one of a group. */
  get parts(): readonly Wanted[] {
    return [this];
  }

  /** The clients of its parts, each once. */
  get envs(): readonly Env[] {
    return [this.env];
  }

  /** The command that announces. */
  get publish(): "PUBLISH" | "SPUBLISH" {
    return this.env.runner.publishCommand;
  }

  /** Emits an event about it; `of`: its owner's wire id. */
  emit<E extends LockEventName>(event: E, details: Details<E>, of?: Identified): void {
    this.env.events.emit(event, details, this, of);
  }
}
