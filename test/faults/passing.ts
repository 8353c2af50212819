/** What the tests of the hand-over inside one process share: which kinds have it, and how its waiters come to stand in line. */
import { expect, type TestContext } from "vitest";
import type { Hold } from "../../src/index.js";
import { KINDS, type Kind } from "../contract/kinds.js";
import { type Matcher, needSharded, until } from "../support/index.js";
import { atLast, type Bed, script, type Topology, turn, type Watched, watch } from "./harness.js";

/** Nobody is woken by the poll. */
export const NEVER = 60_000;

/** The kinds whose locks go from hand to hand by one command. */
export const PASSED: readonly Kind[] = KINDS.filter(({ name }) =>
  ["lock", "fenced lock", "write side"].includes(name),
);

export const PASS: Matcher = script("pass");

/** Skips what needs the first release to be a hand-over: a cluster has none while it cannot count who else listens. */
export async function needCounted(topology: Topology, context: TestContext): Promise<void> {
  if (topology === "cluster") await needSharded(true, context);
}

/** Resolves when the first one in line has been refused and listens: from then on nobody here tries without a reason. */
export async function parked(bed: Bed, tries = 2): Promise<void> {
  await until("the first waiter listens", () => bed.proxy.count(script("acquire", bed.name)) >= tries);
  // Of the same node, behind that try.
  await bed.lock.isLocked();
  await turn();
}

export interface Line {
  /** Has the lock. */
  readonly giver: Hold;
  /** Waits for it in the same process. */
  readonly successor: Watched<Hold>;
  /** Comes after it. */
  readonly next: Watched<Hold>;
  /** Ends the successor's call. */
  readonly controller: AbortController;
}

/** A holder and two who wait behind it, in one process. */
export async function lineUp(bed: Bed, options: { wait?: number; lease?: number } = {}): Promise<Line> {
  const giver = await atLast(() => bed.lock.lock({ lease: 50_000 }));
  bed.proxy.clear();
  const controller = new AbortController();
  const successor = watch(bed.lock.lock({ signal: controller.signal, ...options }));
  const next = watch(bed.lock.lock());
  await parked(bed);
  bed.proxy.clear();
  return { giver, successor, next, controller };
}

/** The server has this hold so many times, and no other. */
export async function expectHolder(
  bed: Bed,
  { ownerId }: { readonly ownerId: string },
  count = 1,
): Promise<void> {
  expect((await bed.keys())[bed.name]?.value).toEqual(bed.kind.fields(ownerId, count));
}
