/** The commands of one owner on one lock: they take effect one at a time, in the order in which they were called. */
import { elapsed, elapsedSince, instant } from "../base/clock.js";
import type { Frame } from "../owners/context.js";
import { type Backend, DONE, type Giving, NOTHING_LEFT } from "./backend.js";
import { anyLive, restOf } from "./holds.js";
import { forgetIfIdle, type OpenCall, type OwnerLock } from "./owner-lock.js";
import { Turns } from "./turns.js";
import { quietly } from "./work.js";

/** Runs a task when those that were handed in before it have settled. */
export function inOrder<T>(own: OwnerLock, task: () => Promise<T>): Promise<T> {
  const work = queueCommand(own, task);
  const done = () => commandDone(own, work);
  work.then(done, done);
  return work;
}

/** As {@link inOrder}, for a task that ends by {@link commandDone}. */
export function queueCommand<T>(own: OwnerLock, task: () => Promise<T>): Promise<T> {
  const work = own.lastCommand ? own.lastCommand.then(task, task) : task();
  own.lastCommand = work;
  return work;
}

/** A command has settled: the next one need not wait for it. */
export function commandDone(own: OwnerLock, work: Promise<unknown> | undefined): void {
  if (own.lastCommand !== work) return;
  own.lastCommand = undefined;
  if (own.owner) forgetIfIdle(own);
}

/** The promise of a task: it may be answered before what the task leaves behind is settled. */
export interface Answer<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
  /** Milliseconds that are left for it as its task begins. */
  readonly left: number;
  /** Others went before it. */
  readonly waited: boolean;
}

/**
 * As {@link inOrder}. Behind a command that Redis does not answer the task would wait without end: the answer is
 * UNAVAILABLE when it has not begun within `within` milliseconds, and then it does not begin. Nothing is to be settled, nor
 * waited for, if it throws at once.
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

/** A task behind others, which does not begin once `within` milliseconds are over. */
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

/** At least so much that a command can be sent with it. */
function leftOf(within: number, elapsed: number): number {
  return Math.max(1, within - elapsed);
}

/**
 * Runs one command that changes the holds under an id of its own, `callId`. Commands before it that may arrive once
 * more (the connection was lost meanwhile, or there was no answer) get a tombstone first, which refuses them then:
 * a late one would set back the count, or cut the TTL that the hold believes in. With no hold left none is needed,
 * since the wire id is over then. All of it has `within` milliseconds; the command is told how many are left.
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

/** A command may arrive once more: the next one writes its tombstone first. */
function leaveUnsure(own: OwnerLock, backend: Backend, wireId: string, callId: string): void {
  const { runner } = own.table.env;
  // By the state of that moment there is nothing to undo, so this only leaves the tombstone.
  const rest = () => restOf(own, backend);
  own.unsure ??= [];
  own.unsure.push((ms) => quietly(runner.withTimeout("", backend.undo(wireId, callId, rest), ms)));
}

/** Releases all holds of a side but the rest, which has `left` milliseconds to go: the wire id lives on while any hold does. */
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

/** A release that finds nothing left leaves no tombstone: an acquire that arrives still later would take what nobody gives back. */
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

/** In the background: whatever the server has of a wire id, or may still get, is nobody's. */
export function endWireId(own: OwnerLock, backend: Backend, wireId: string): Promise<unknown> {
  const undone = quietly(backend.undo(wireId, undefined, () => NOTHING_LEFT));
  own.table.env.settle(undone);
  return undone;
}

/** A call, and what undoes its try that was on its way when it was given up; that is there until it was answered. */
interface Undoable {
  readonly own: OwnerLock;
  readonly backend: Backend;
  readonly wireId: string | undefined;
  behind: Promise<unknown> | undefined;
}

/**
 * Undoes a try that is on its way by a command right behind it. The wire id is kept: what is granted once that command's
 * tombstone has lapsed is undone by another.
 */
export function undoSent(call: Undoable): void {
  call.behind = endWireId(call.own, call.backend, call.wireId as string).then(() => {
    call.behind = undefined;
  });
}

/** Undoes what the tries of a call got or may still get, unless a command for that is under way. */
export function undoTry({ own, backend, wireId, behind }: Undoable): Promise<unknown> {
  return behind ?? (wireId ? endWireId(own, backend, wireId) : Promise.resolve());
}

/** Waits for work to settle, as long as one command may take. */
export function awhile(own: OwnerLock, work: Promise<unknown>): Promise<void> {
  return quietly(own.table.env.runner.withTimeout("", work));
}

/** Holds, turns or deadlines have changed: whatever depends on them looks again. */
export function changed(own: OwnerLock): void {
  const { live, watchdog } = own.table;
  if (own.firstHold) live.add(own);
  else live.remove(own);
  watchdog.watch(own);
  if (own.owner) tellOwner(own);
}

/** What other calls of the owner do may depend on it. */
function tellOwner(own: OwnerLock): void {
  if (own.calls) tellCalls(own, own.calls);
  own.turns?.resume();
  forgetIfIdle(own);
}

/** What calls do depends on whether their owner holds the lock; those that wait for their turn are resumed one by one. */
function tellCalls(own: OwnerLock, calls: ReadonlySet<OpenCall>): void {
  const holds = anyLive(own);
  if (holds === own.held) return;
  own.held = holds;
  for (const call of calls) if (!call.awaitsTurn) call.resume();
}

/** The run is over: a sibling may begin. */
export function endRun(own: OwnerLock | undefined, frame: Frame | undefined): void {
  if (!own || !frame || !own.turns?.end(frame)) return;
  dropTurns(own);
  changed(own);
}

/** The turns of an owner's runs; made when the first one begins. */
export function turnsOf(own: OwnerLock): Turns {
  own.turns ??= new Turns();
  return own.turns;
}

/** Drops turns that nobody has or waits for. */
export function dropTurns(own: OwnerLock): void {
  if (own.turns?.idle) own.turns = undefined;
  forgetIfIdle(own);
}
