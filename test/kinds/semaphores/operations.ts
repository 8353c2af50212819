/** Every call of semaphores and latches: what it does to the number, and what a late copy of it must leave alone. */
import { type Counts, type Faces, ID, NEVER, UNKNOWN } from "./place.js";

type State = readonly [value: string | null, used?: number];

interface Effect {
  /** The number before the call and after it; and the permits in use, for a semaphore of permits with ids. */
  readonly from: State;
  readonly to: State;
  /** What the call resolves with. */
  readonly gives?: unknown;
  /** Its messages. */
  readonly heard?: readonly string[];
  /** Milliseconds for which the permit in use is leased then. */
  readonly lease?: number;
  /** It takes permits, and none if it fails. All other calls take effect in the end, once. */
  readonly takes?: true;
}

export interface Operation {
  /** Makes the call, with the id of the permit in use, if there is one. */
  readonly call: (on: Faces, id: string, signal?: AbortSignal) => Promise<unknown>;
  readonly does: Effect;
  /** What is called after it, with its outcome; from then on the state is `to`, whatever arrives late. */
  readonly next: {
    readonly call: (on: Faces, outcome: unknown, id: string) => Promise<unknown>;
    readonly to: State;
  };
}

export const countsOf = ([value, used = 0]: State): Counts => [value, used];

const wipe = (on: Faces) => on.call("DEL", on.name);
const giveBack = (on: Faces, outcome: unknown) => on.permits().release(outcome as string);
const countDown = async (on: Faces) => {
  for (let i = 0; i < 3; i++) await on.latch().countDown();
};

export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "semaphore.trySetPermits": {
    call: (on) => on.semaphore().trySetPermits(5),
    does: { gives: true, heard: ["5"], from: [null], to: ["5"] },
    next: { call: wipe, to: [null] },
  },
  "semaphore.trySetPermits that is too late": {
    call: (on) => on.semaphore().trySetPermits(5),
    does: { gives: false, from: ["3"], to: ["3"] },
    next: { call: wipe, to: [null] },
  },
  "semaphore.acquire": {
    call: (on, _, signal) => on.semaphore().acquire(2, { signal }),
    does: { takes: true, from: ["5"], to: ["3"] },
    next: { call: (on) => on.semaphore().release(2), to: ["5"] },
  },
  "semaphore.tryAcquire": {
    call: (on, _, signal) => on.semaphore().tryAcquire(3, 0, { signal }),
    does: { takes: true, gives: true, from: ["5"], to: ["2"] },
    next: { call: (on) => on.semaphore().release(3), to: ["5"] },
  },
  "semaphore.tryAcquire that is refused": {
    call: (on) => on.semaphore().tryAcquire(6),
    does: { takes: true, gives: false, from: ["5"], to: ["5"] },
    next: { call: (on) => on.semaphore().release(4), to: ["9"] },
  },
  "semaphore.drainPermits": {
    call: (on) => on.semaphore().drainPermits(),
    does: { takes: true, gives: 5, from: ["5"], to: ["0"] },
    next: { call: (on) => on.semaphore().release(3), to: ["3"] },
  },
  "semaphore.release": {
    call: (on) => on.semaphore().release(2),
    does: { heard: ["7"], from: ["5"], to: ["7"] },
    next: { call: (on) => on.semaphore().acquire(7), to: ["0"] },
  },
  "semaphore.release that makes it": {
    call: (on) => on.semaphore().release(2),
    does: { heard: ["2"], from: [null], to: ["2"] },
    next: { call: wipe, to: [null] },
  },
  "semaphore.addPermits": {
    call: (on) => on.semaphore().addPermits(3),
    does: { heard: ["8"], from: ["5"], to: ["8"] },
    next: { call: (on) => on.semaphore().acquire(8), to: ["0"] },
  },
  "permits.trySetPermits": {
    call: (on) => on.permits().trySetPermits(5),
    does: { gives: true, heard: ["5"], from: [null], to: ["5"] },
    next: { call: wipe, to: [null] },
  },
  "permits.acquire": {
    call: (on, _, signal) => on.permits().acquire({ signal }),
    does: { takes: true, gives: ID, lease: 9_000, from: ["5"], to: ["4", 1] },
    next: { call: giveBack, to: ["5"] },
  },
  "permits.acquire with a lease": {
    call: (on, _, signal) => on.permits().acquire({ lease: 60_000, signal }),
    does: { takes: true, gives: ID, lease: 60_000, from: ["5"], to: ["4", 1] },
    next: { call: giveBack, to: ["5"] },
  },
  "permits.tryAcquire": {
    call: (on, _, signal) => on.permits().tryAcquire(0, 60_000, { signal }),
    does: { takes: true, gives: ID, lease: 60_000, from: ["5"], to: ["4", 1] },
    next: { call: giveBack, to: ["5"] },
  },
  "permits.tryAcquire that is refused": {
    call: (on) => on.permits().tryAcquire(0, 60_000),
    does: { takes: true, gives: null, from: ["0"], to: ["0"] },
    next: { call: (on) => on.permits().addPermits(4), to: ["4"] },
  },
  "permits.release": {
    call: (on, id) => on.permits().release(id),
    does: { heard: ["5"], from: ["4", 1], to: ["5"] },
    next: { call: (on) => on.permits().acquire(), to: ["4", 1] },
  },
  "permits.tryRelease": {
    call: (on, id) => on.permits().tryRelease(id),
    does: { gives: true, heard: ["5"], from: ["4", 1], to: ["5"] },
    next: { call: (on) => on.permits().acquire(), to: ["4", 1] },
  },
  "permits.tryRelease of what nobody has": {
    call: (on) => on.permits().tryRelease(UNKNOWN),
    does: { gives: false, from: ["4", 1], to: ["4", 1] },
    next: { call: (on, _, id) => on.permits().release(id), to: ["5"] },
  },
  "permits.updateLeaseTime": {
    call: (on, id) => on.permits().updateLeaseTime(id, 60_000),
    does: { gives: true, lease: 60_000, from: ["4", 1], to: ["4", 1] },
    next: { call: (on, _, id) => on.permits().release(id), to: ["5"] },
  },
  "permits.setPermits": {
    call: (on) => on.permits().setPermits(8),
    does: { heard: ["8"], from: ["4", 1], to: ["7", 1] },
    next: { call: (on) => on.permits().setPermits(2), to: ["1", 1] },
  },
  "permits.addPermits": {
    call: (on) => on.permits().addPermits(3),
    does: { heard: ["3"], from: ["4", 1], to: ["7", 1] },
    next: { call: (on) => on.permits().setPermits(1), to: ["0", 1] },
  },
  "latch.trySetCount": {
    call: (on) => on.latch().trySetCount(3),
    does: { gives: true, heard: ["1"], from: [null], to: ["3"] },
    next: { call: countDown, to: [null] },
  },
  "latch.trySetCount that is too late": {
    call: (on) => on.latch().trySetCount(5),
    does: { gives: false, from: ["3"], to: ["3"] },
    next: { call: countDown, to: [null] },
  },
  "latch.countDown": {
    call: (on) => on.latch().countDown(),
    does: { from: ["3"], to: ["2"] },
    next: { call: (on) => on.latch().countDown(), to: ["1"] },
  },
  "latch.countDown of an open one": {
    call: (on) => on.latch().countDown(),
    does: { from: [null], to: [null] },
    next: { call: (on) => on.latch().trySetCount(3), to: ["3"] },
  },
  "latch.countDown that is the last": {
    call: (on) => on.latch().countDown(),
    does: { heard: ["0"], from: ["1"], to: [null] },
    next: { call: (on) => on.latch().trySetCount(3), to: ["3"] },
  },
};

/** The calls that can be aborted. */
export const ABORTABLE: readonly string[] = Object.keys(OPERATIONS).filter((name) =>
  /cquire(?! that)/.test(name),
);

/** Makes the state before the call; resolves with the id of the permit in use, or an empty text. */
export async function prepare(on: Faces, { does }: Operation): Promise<string> {
  const [value, used = 0] = does.from;
  if (value !== null) await on.call("SET", on.name, Number(value) + used);
  return used === 0 ? "" : on.permits().acquire();
}

type Question = readonly [call: Operation["call"], gives: unknown, value: string | null, used?: number];

const asOperation = ([call, gives, value, used = 0]: Question): Operation => ({
  call,
  does: { from: [value, used], to: [value, used], gives },
  next: { call: async () => {}, to: [value, used] },
});

/** Calls that change nothing. */
const QUESTIONS: Readonly<Record<string, Question>> = {
  "semaphore.availablePermits": [(on) => on.semaphore().availablePermits(), 5, "5"],
  "semaphore.availablePermits in debt": [(on) => on.semaphore().availablePermits(), -3, "-3"],
  "semaphore.availablePermits of none": [(on) => on.semaphore().availablePermits(), 0, null],
  "semaphore.drainPermits of none": [(on) => on.semaphore().drainPermits(), 0, null],
  "permits.availablePermits": [(on) => on.permits().availablePermits(), 4, "4", 1],
  "permits.acquiredPermits": [(on) => on.permits().acquiredPermits(), 1, "4", 1],
  "permits.getPermits": [(on) => on.permits().getPermits(), 5, "4", 1],
  "permits.getPermits of none": [(on) => on.permits().getPermits(), 0, null],
  "latch.getCount": [(on) => on.latch().getCount(), 3, "3"],
  "latch.getCount of an open one": [(on) => on.latch().getCount(), 0, null],
  "latch.await without a wait": [(on) => on.latch().await(0), false, "3"],
  "latch.await of an open one": [(on) => on.latch().await(), true, null],
  "latch.await at 0": [(on) => on.latch().await(NEVER), true, "0"],
  "latch.await below 0": [(on) => on.latch().await(0), true, "-2"],
};

/** Every call that is one command. */
export const CALLS: readonly (readonly [name: string, operation: Operation])[] = [
  ...Object.entries(OPERATIONS),
  ...Object.entries(QUESTIONS).map(([name, question]) => [name, asOperation(question)] as const),
];

type Plain = readonly (readonly [name: string, call: (on: Faces) => Promise<unknown>])[];

/** Every call that may wait, for a short time. */
export const SHORT: Plain = [
  ["semaphore.tryAcquire for 200 ms", (on) => on.semaphore().tryAcquire(1, 200)],
  ["semaphore.run within 200 ms", (on) => on.semaphore().run(() => {}, { wait: 200 })],
  ["permits.tryAcquire for 200 ms", (on) => on.permits().tryAcquire(200, 60_000)],
  ["latch.await for 200 ms", (on) => on.latch().await(200)],
];
/** Every other one, about a permit that nobody has. */
export const PLAIN: Plain = CALLS.map(([name, { call }]) => [name, (on) => call(on, UNKNOWN)]);
