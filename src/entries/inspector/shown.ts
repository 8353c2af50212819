/** What the program and the inspector's page both find out about locks. No value is imported, so that a browser can run it. */
import type { LockInfo, WaiterInfo } from "../../index.js";

/** The numbers of a semaphore, permits or a latch, for people. */
export function numbersOf({ permits, limit, count, kind }: LockInfo): string {
  if (kind === "latch") return `count ${count}`;
  if (kind === "permits") return `${permits} of ${limit} free`;
  return kind === "semaphore" ? `${permits} free` : "";
}

/** Whether a lock has holders in addition to those that were shown to the operator; null is a free one. */
export function hasOthers(lock: LockInfo | null, shown: readonly string[]): boolean {
  return (lock?.holders ?? []).some(({ ownerId }) => !shown.includes(ownerId));
}

/** An owner that holds `held` waits for `wanted`. */
export interface Edge {
  readonly held: string;
  readonly wanted: string;
  readonly waiter: WaiterInfo;
}

/**
 * Circles of the wait-for graph. A lock is in one circle at most: where one circle ends, the next look may show
 * another.
 */
export function circlesOf(locks: readonly LockInfo[]): Edge[][] {
  const edges = new Map<string, Edge[]>();
  for (const lock of locks) {
    const { name: wanted, waiting } = lock;
    for (const waiter of waiting) {
      for (const held of heldWhile(waiter, lock)) {
        edges.set(held, [...(edges.get(held) ?? []), { held, wanted, waiter }]);
      }
    }
  }
  const circles: Edge[][] = [];
  const done = new Set<string>();
  for (const start of edges.keys()) {
    for (let circle = circleFrom(start, edges, done); circle; circle = circleFrom(start, edges, done)) {
      circles.push(circle);
      for (const { held } of circle) done.add(held);
    }
  }
  return circles;
}

/** What a waiter of the lock keeps from others meanwhile; the lock itself, if the waiter waits for itself. */
function heldWhile(
  { ownerId: own, client, holds }: WaiterInfo,
  { name, holders }: LockInfo,
): readonly string[] {
  // Its owner has the lock: it waits for its turn behind other runs of that owner, and those are no other owner's.
  if (holders.some(({ ownerId }) => ownerId === own)) return [];
  if (!holds.includes(name)) return holds;
  // A run or scope around it has the lock, so it waits for itself. But a hold that its client has not told of is younger
  // than all that the client told. The one that counted then is over, and may have been that of the waiter's own owner.
  const isTold = holders.some((holder) => holder.client?.id === client?.id && holder.since !== null);
  if (!isTold) return [];
  return holders.length === 1 ? holds : holds.filter((held) => held !== name);
}

/**
 * Finds a circle depth first, without recursion, because a chain of locks may be long. `done`: locks from where there
 * is no circle, or none any more.
 */
function circleFrom(
  start: string,
  edges: ReadonlyMap<string, readonly Edge[]>,
  done: Set<string>,
): Edge[] | undefined {
  if (done.has(start)) return undefined;
  const path: Edge[] = [];
  const on = new Set<string>();
  const left: { name: string; next: Edge[] }[] = [{ name: start, next: [...(edges.get(start) ?? [])] }];
  on.add(start);
  for (let top = left.at(-1); top; top = left.at(-1)) {
    const edge = top.next.pop();
    if (!edge) {
      left.pop();
      path.pop();
      on.delete(top.name);
      done.add(top.name);
    } else if (on.has(edge.wanted)) {
      return [...path, edge].slice(left.findIndex(({ name }) => name === edge.wanted));
    } else if (!done.has(edge.wanted)) {
      path.push(edge);
      on.add(edge.wanted);
      left.push({ name: edge.wanted, next: [...(edges.get(edge.wanted) ?? [])] });
    }
  }
  return undefined;
}
