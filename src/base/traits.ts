/** How locks, groups of locks and numbers of permits differ for those who wait for them. */

/** A read-write lock has two sides, all other locks have one. */
export type Side = "only" | "read" | "write";

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
