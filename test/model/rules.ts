/** The differences between the kinds of locks: which owners may share, and which call goes first. Contract section 4. */
import type { Call, Hold } from "./parties.js";

export type Side = "only" | "read" | "write";

export interface Rules {
  readonly sides: readonly Side[];
  /** Whether two owners may hold these sides at the same time. */
  share(a: Side, b: Side): boolean;
  /** Whether the waiting call `other` must be granted before `call`. */
  goesBefore(other: Call, call: Call): boolean;
  /** Whether `call` may wait only because `other` waits, although no holder is in its way. */
  mayHoldUp(other: Call, call: Call): boolean;
  /** Whether an owner that has these holds, and no others, is refused this side at once. */
  refuses(holds: readonly Hold[], side: Side): boolean;
}

const never = () => false;

function surelyBefore(other: Call, call: Call): boolean {
  return other.latest < call.order;
}

function perhapsBefore(other: Call, call: Call): boolean {
  return other.order < call.latest;
}

function isOfSameLine(other: Call, call: Call): boolean {
  return call.wait > 0 && other.client === call.client;
}

/** Reentrant. The waiters of one client are served in the order of their calls; a single try goes past them. */
export const plain: Rules = {
  sides: ["only"],
  share: never,
  goesBefore: (other, call) => isOfSameLine(other, call) && surelyBefore(other, call),
  mayHoldUp: (other, call) => isOfSameLine(other, call) && perhapsBefore(other, call),
  refuses: never,
};

/** First come, first served, over all clients. */
export const fair: Rules = {
  ...plain,
  goesBefore: surelyBefore,
  mayHoldUp: perhapsBefore,
};

/** Many readers or one writer, which may read too; a reader never becomes a writer. */
export function readWrite(preferWriters: boolean): Rules {
  return {
    sides: ["read", "write"],
    share: (a, b) => a === "read" && b === "read",
    goesBefore(other, call) {
      if (other.side !== "write") return false;
      if (call.side === "read") return preferWriters && surelyBefore(other, call);
      // Each writer may try once when it comes. After that they wait in the order of their calls, whenever each has
      // tried.
      return call.waits && other.client === call.client && other.called < call.called;
    },
    mayHoldUp(other, call) {
      if (other.side !== "write") return false;
      // This includes a writer that came later, if the reader waits for another reason.
      if (call.side === "read") return preferWriters;
      return other.client === call.client && perhapsBefore(other, call);
    },
    refuses: (holds, side) =>
      side === "write" && holds.length > 0 && holds.every((hold) => hold.side === "read"),
  };
}
