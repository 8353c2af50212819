/**
 * Finds bare holds of the async tree that a call is made in. A call that waits for such a hold waits for itself, unless
 * another task of the tree gives the hold back.
 *
 * On Node 20 an AsyncLocalStorage that is in use makes every promise of the process slower, so only some calls are
 * marked. That is enough: a task that waits for itself does so whenever it runs.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { HoldRecord } from "./hold-record.js";

/** What a call wants: a lock, by its key, or as many members of a group as are its quorum. */
export type Wanted = string | { readonly lockKeys: readonly string[]; readonly quorum: number };

/** The mark of one bare call. All that its caller awaits after the call has this mark. */
export interface Mark {
  readonly wanted: Wanted;
  readonly parent: Mark | undefined;
  /** The hold that the call was granted; weak, because async contexts may live for long. */
  held: WeakRef<HoldRecord> | undefined;
}

const store = new AsyncLocalStorage<Mark>();

/** Marks the current context. To be called before the call's first `await`, so that the caller's context has the mark. */
export function markBareCall(wanted: Wanted): Mark {
  const mark: Mark = { wanted, parent: firstLive(store.getStore()), held: undefined };
  store.enterWith(mark);
  return mark;
}

/** No call is marked for a while, so the process stops carrying marks along. */
export function forgetMarks(): void {
  store.disable();
}

/**
 * A live bare hold that was granted in the current async tree, if its call was marked, and for which a call that wants
 * this may have to wait. A quorum does not wait for fewer members than it can spare.
 */
export function ownHold(wanted: Wanted): HoldRecord | undefined {
  const keys = keysOf(wanted);
  const spare = typeof wanted === "string" ? 0 : keys.length - wanted.quorum;
  const taken = new Set<string>();
  let nearest: HoldRecord | undefined;
  for (let mark = store.getStore(); mark; mark = mark.parent) {
    if (!isLive(mark)) continue;
    const theirs = keysOf(mark.wanted).filter((key) => keys.includes(key));
    for (const key of theirs) taken.add(key);
    if (theirs.length > 0) nearest ??= mark.held?.deref();
    if (taken.size > spare) return nearest;
  }
  return undefined;
}

function keysOf(wanted: Wanted): readonly string[] {
  return typeof wanted === "string" ? [wanted] : wanted.lockKeys;
}

function firstLive(mark: Mark | undefined): Mark | undefined {
  let next = mark;
  while (next && !isLive(next)) next = next.parent;
  return next;
}

/**
 * Whether the mark's hold lives. A mark whose call is still under way is a sibling's, which began in the same context (as
 * with `Promise.all`): a task that awaits its call cannot make the next one before the grant.
 */
function isLive({ held }: Mark): boolean {
  return held?.deref()?.isHeld ?? false;
}
