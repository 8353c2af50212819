/** What the tests of the hand-over share: the kinds that have it, and how to make its calls wait in a queue. */
import { expect, type TestContext } from "vitest";
import type { Hold } from "../../src/index.js";
import { KINDS, type Kind } from "../contract/kinds.js";
import { type Matcher, needSharded, until } from "../support/index.js";
import { atLast, type Bed, script, type Topology, turn, untilQuiet, type Watched, watch } from "./harness.js";

/** The kinds of lock with a hand-over by one command. */
export const PASSED: readonly Kind[] = KINDS.filter(({ name }) =>
  ["lock", "fenced lock", "write side"].includes(name),
);

export const PASS: Matcher = script("pass");

/** Skips a test whose first release must be a hand-over: a cluster has none if it cannot count who else listens. */
export async function needCounted(topology: Topology, context: TestContext): Promise<void> {
  if (topology === "cluster") await needSharded(true, context);
}

/**
 * Resolves when the first waiter was refused and listens: from then on no call of this client tries without a reason.
 */
export async function parked(bed: Bed, tries = 2): Promise<void> {
  const asked = () => bed.proxy.count(script("acquire", bed.name));
  await until("the first waiter listens", () => asked() >= tries);
  // A try for another reason, such as a cluster that becomes ready, may have been counted, with one more on its way.
  await untilQuiet(asked, 20);
  // Sent to the same node after that try, so its answer comes after the try's answer.
  await bed.lock.isLocked();
  await turn();
}

export interface Line {
  /** The hold that has the lock. */
  readonly giver: Hold;
  /** The call that waits for the lock in the same process. */
  readonly successor: Watched<Hold>;
  /** The call behind the successor. */
  readonly next: Watched<Hold>;
  /** Aborts the successor's call. */
  readonly controller: AbortController;
}

/** A holder, and two calls that wait behind it in the same process. */
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

/** On the server only this owner has the lock, with this count. */
export async function expectHolder(
  bed: Bed,
  { ownerId }: { readonly ownerId: string },
  count = 1,
): Promise<void> {
  expect((await bed.keys())[bed.name]?.value).toEqual(bed.kind.fields(ownerId, count));
}
