/** The commands of one owner on one lock. They take effect one at a time, in the order of the calls. */
import { elapsed, elapsedSince, instant } from "../base/clock.js";
import { quietly } from "../base/work.js";
import type { Frame } from "../owners/context.js";
import { type Backend, DONE, type Giving } from "./backend.js";
import { anyLive, restOf } from "./holds.js";
import { forgetIfIdle, type OwnerLock } from "./owner-lock.js";
import { Turns } from "./turns.js";
import { endWireId } from "./undo.js";

/** Runs a task when the owner's earlier tasks have settled. */
export function inOrder<T>(own: OwnerLock, task: () => Promise<T>): Promise<T> {
  const work = queueCommand(own, task);
  const done = () => commandDone(own, work);
  work.then(done, done);
  return work;
}

/** As {@link inOrder}, for a task that calls {@link commandDone} itself. */
export function queueCommand<T>(own: OwnerLock, task: () => Promise<T>): Promise<T> {
  const work = own.lastCommand ? own.lastCommand.then(task, task) : task();
  own.lastCommand = work;
  return work;
}

/** A command has settled: the next command need not wait for it. */
export function commandDone(own: OwnerLock, work: Promise<unknown> | undefined): void {
  if (own.lastCommand !== work) return;
  own.lastCommand = undefined;
  if (own.owner) forgetIfIdle(own);
}

/** Answers the caller of a task, possibly before the task itself has settled. */
export interface Answer<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
  /** Milliseconds that the task has left when it begins. */
  readonly left: number;
  /** The task had to wait for earlier ones. */
  readonly waited: boolean;
}

/**
 * As {@link inOrder}, but a task that has not begun within `within` milliseconds never begins, and is answered
 * UNAVAILABLE: behind a command that Redis does not answer it would wait without end. `settled` is undefined if the task
 * throws at once.
 */
export function inOrderWithin<T>(
  own: OwnerLock,
  lockName: string,
  within: number,
  task: (answer: Answer<T>) => Promise<void>,
): { readonly answer: Promise<T>; readonly settled: Promise<void> | undefined } {
  let settled: Promise<void> | undefined;
  const answer = new Promise<T>((resolve, reject) => {
    const waited = own.lastCommand !== undefined;
    const begin = (left: number) => task({ resolve, reject, left, waited });
    const expire = () => reject(own.table.env.runner.unavailable(lockName));
    settled = queueCommand(own, waited ? inTime(own, within, begin, expire) : () => begin(within));
    const done = () => commandDone(own, settled);
    settled.then(done, (error: unknown) => {
      done();
      reject(error);
    });
  });
  return { answer, settled };
}

/** A task that waits for earlier ones, and does not begin once `within` milliseconds are over. */
function inTime(
  own: OwnerLock,
  within: number,
  begin: (left: number) => Promise<void>,
  expire: () => void,
): () => Promise<void> {
  const { clock } = own.table.env;
  const called = instant(clock);
  let isLate = false;
  const cancel = clock.after(within, () => {
    isLate = true;
    expire();
  });
  return async () => {
    cancel();
    if (!isLate) await begin(leftOf(within, elapsedSince(clock, called)));
  };
}

/** At least one millisecond, since a command cannot be sent with none. */
function leftOf(within: number, elapsed: number): number {
  return Math.max(1, within - elapsed);
}

/**
 * Runs one command that changes the holds, under an id of its own: `callId`. An earlier command whose outcome is unknown
 * may still arrive: it would set back the count, or cut the TTL. So its tombstone is written first, which makes the server
 * refuse it. Without a hold no tombstone is needed, since the wire id is over. All of it has `within` milliseconds;
 * `command` is told how many are left.
 */
export async function once<T>(
  own: OwnerLock,
  backend: Backend,
  callId: string,
  command: (left: number) => Promise<T>,
  within: number = own.table.env.runner.commandTimeout,
): Promise<T> {
  const { runner, clock } = own.table.env;
  const called = instant(clock);
  let begun = called;
  let left = within;
  for (const settle of own.unsure?.splice(0) ?? []) {
    await settle(left);
    begun = instant(clock);
    left = leftOf(within, elapsed(called, begun));
  }
  const { firstHold } = own;
  const { connectionEpoch } = runner;
  let isUnsure = true;
  try {
    const result = await command(left);
    isUnsure =
      runner.connectionEpoch !== connectionEpoch || elapsedSince(clock, begun) > runner.commandTimeout;
    return result;
  } finally {
    if (isUnsure && firstHold) leaveUnsure(own, backend, firstHold.wireId, callId);
  }
}

/** The server may run this command later, or again: the owner's next command writes its tombstone first. */
function leaveUnsure(own: OwnerLock, backend: Backend, wireId: string, callId: string): void {
  const { runner } = own.table.env;
  // `rest` is the state when the tombstone is written, so the undo changes nothing but leaves the tombstone.
  const rest = () => restOf(own, backend);
  own.unsure ??= [];
  own.unsure.push((ms) => quietly(runner.withTimeout("", backend.undo(wireId, callId, rest), ms)));
}

/** Releases the holds of a side except the rest, which lasts `left` more milliseconds. The wire id ends with the last hold. */
export function letGo(
  own: OwnerLock,
  backend: Backend,
  wireId: string,
  left: number,
  giving: Giving,
): Promise<number> {
  if (left === 0) {
    const released = backend.release(wireId, undefined, giving);
    return own.troubles?.resent ? undoIfLost(own, backend, wireId, released) : released;
  }
  const callId = own.table.env.callId(wireId);
  return once(own, backend, callId, () => backend.release(wireId, callId, giving));
}

/**
 * A release that finds nothing leaves no tombstone. An acquire that arrived after it would take the lock for nobody, so
 * the wire id is ended by an undo.
 */
async function undoIfLost(
  own: OwnerLock,
  backend: Backend,
  wireId: string,
  released: Promise<number>,
): Promise<number> {
  const word = await released;
  if (word !== DONE) void endWireId(own, backend, wireId);
  return word;
}

/** Waits for work to settle, at most as long as a command may take. */
export function awhile(own: OwnerLock, work: Promise<unknown>): Promise<void> {
  return quietly(own.table.env.runner.withTimeout("", work));
}

/** Holds, turns or deadlines have changed: whatever depends on them looks again. */
export function changed(own: OwnerLock): void {
  const { live, watchdog } = own.table;
  if (own.firstHold) live.add(own);
  else live.remove(own);
  watchdog.watch(own);
  if (!own.owner) return;
  tellCalls(own);
  forgetIfIdle(own);
}

/** In call order, resumes calls that have their turn; if the owner's hold began or ended, also calls that await none. */
function tellCalls(own: OwnerLock): void {
  if (!own.calls) return;
  const holds = anyLive(own);
  const isNews = holds !== own.held;
  // Of many waiting calls none has to look again.
  if (!isNews && !own.turns) return;
  own.held = holds;
  for (const call of own.calls) {
    if (call.awaitsTurn) own.turns?.offer(call);
    else if (isNews) call.resume();
  }
}

/** A call is over: the next may have its turn. */
export function callEnded(own: OwnerLock): void {
  tellCalls(own);
  if (own.owner) dropTurns(own);
}

/** The run is over: a sibling may begin. */
export function endRun(own: OwnerLock | undefined, frame: Frame | undefined): void {
  if (!own || !frame || !own.turns?.end(frame)) return;
  dropTurns(own);
  changed(own);
}

/** The turns of an owner's runs; made for its first run. */
export function turnsOf(own: OwnerLock): Turns {
  own.turns ??= new Turns();
  return own.turns;
}

/** Drops the turns once no run has or awaits one. */
function dropTurns(own: OwnerLock): void {
  if (own.turns?.idle) own.turns = undefined;
  forgetIfIdle(own);
}
