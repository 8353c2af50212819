/** `holdfast deadlocks`: owners that wait for each other. */
import { wallTime } from "../../base/platform.js";
import type { HolderInfo, LockInfo, WaiterInfo } from "../../index.js";
import { type Command, EXIT } from "./command.js";
import { allLocks, tellOfPart, waiterText } from "./locks.js";

/** An owner that holds `held` waits for `wanted`. */
export interface Edge {
  readonly held: string;
  readonly wanted: string;
  readonly waiter: WaiterInfo;
  /**
   * Where the waiter's process took `held`, as far as its holds are traced: one place, unless the process has further
   * readers.
   */
  readonly callSites: readonly string[];
}

export const deadlocks: Command = {
  name: "deadlocks",
  usage: "",
  summary: "circles of owners that wait for each other, over all processes",
  details: [
    "By what clients tell of themselves, which is up to a third of a watchdogTimeout old: look twice before you act. A circle",
    "ends when one of its calls gives up or one of its locks is taken away. The exit code is 1 if there is one. Where each hold",
    "was taken is told by clients with the option traceHolds.",
  ],
  words: { least: 0, most: 0 },
  act: async (task) => {
    const { connect, terminal } = task;
    const circles = circlesOf(await allLocks(connect().client, undefined));
    const now = wallTime();
    terminal.json(circles);
    for (const circle of circles) {
      terminal.say([...circle.map(({ held }) => held), circle[0]?.held].join(" → "), "bold");
      for (const { held, wanted, waiter, callSites } of circle) {
        terminal.say(`  waits for ${wanted}: ${waiterText(waiter, now)}`);
        for (const callSite of callSites) terminal.say(`      took ${held} at ${callSite}`, "dim");
      }
    }
    if (circles.length === 0) terminal.say("There is none.");
    await tellOfPart(task);
    return circles.length > 0 ? EXIT.found : EXIT.ok;
  },
};

/**
 * Circles of the wait-for graph. A lock is in one circle at most: where one circle ends, the next look may show
 * another.
 */
export function circlesOf(locks: readonly LockInfo[]): Edge[][] {
  const holdersOf = new Map(locks.map(({ name, holders }) => [name, holders]));
  const edges = new Map<string, Edge[]>();
  for (const lock of locks) {
    const { name: wanted, waiting } = lock;
    for (const waiter of waiting) {
      for (const held of heldWhile(waiter, lock)) {
        const callSites = callSitesOf(holdersOf.get(held) ?? [], waiter);
        edges.set(held, [...(edges.get(held) ?? []), { held, wanted, waiter, callSites }]);
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
  // than all that the client told: the one that counted then is over, and may have been that of the waiter's own owner.
  const isTold = holders.some((holder) => holder.client?.id === client?.id && holder.since !== null);
  if (!isTold) return [];
  return holders.length === 1 ? holds : holds.filter((held) => held !== name);
}

function callSitesOf(holders: readonly HolderInfo[], { client: its }: WaiterInfo): string[] {
  const own = holders.filter(({ client }) => its !== null && client?.id === its.id);
  return [...new Set(own.flatMap(({ callSite }) => callSite ?? []))];
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
