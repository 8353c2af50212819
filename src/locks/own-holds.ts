/**
 * Bare holds of the async tree that a call is made in. A call that waits for one of them waits for itself, unless
 * another task of the tree gives it back.
 *
 * On Node 20 an AsyncLocalStorage that is in use makes every promise of the process slower, so only some calls are marked: a
 * task that waits for itself does so whenever it runs.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { HoldRecord } from "./hold-record.js";

/** One bare call. What its caller awaits after it has this mark. */
export interface Mark {
  readonly lockKey: string;
  readonly parent: Mark | undefined;
  /** What it was granted; weak, since contexts may live for long. */
  held: WeakRef<HoldRecord> | undefined;
}

const store = new AsyncLocalStorage<Mark>();

/** Marks the current context; to be called before the call's first `await`, whose caller then has it as well. */
export function markBareCall(lockKey: string): Mark {
  const mark: Mark = { lockKey, parent: nearest(store.getStore()), held: undefined };
  store.enterWith(mark);
  return mark;
}

/** No call is marked for a while: the process need not carry marks along. */
export function forgetMarks(): void {
  store.disable();
}

/** A live bare hold on this lock that was granted in the current tree before now, as far as its call was marked. */
export function ownHold(lockKey: string): HoldRecord | undefined {
  for (let mark = store.getStore(); mark; mark = mark.parent) {
    if (mark.lockKey === lockKey && isLive(mark)) return mark.held?.deref();
  }
  return undefined;
}

function nearest(mark: Mark | undefined): Mark | undefined {
  let next = mark;
  while (next && !isLive(next)) next = next.parent;
  return next;
}

/**
 * Whether its hold lives. One whose call is under way is of a sibling that began in the same context, as those of
 * `Promise.all` do: nobody can await a call and make the next one before it is granted.
 */
function isLive({ held }: Mark): boolean {
  return held?.deref()?.isHeld ?? false;
}
