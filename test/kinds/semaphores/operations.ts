/** Every call that changes something, for tests that lose or delay its requests and replies. */
import { expect } from "vitest";
import { type Site, UNKNOWN } from "./helpers.js";

export interface Operation {
  /** Makes the call, with the id of the permit in use, if there is one. */
  readonly call: (site: Site, id: string) => Promise<unknown>;
  /** The result of the call. */
  readonly gives?: unknown;
  /** The value of the key with the name, before the call and after it. */
  readonly value: readonly [before: string | null, after: string | null];
  /** For an expirable semaphore: the permits in use, before the call and after it. */
  readonly used?: readonly [before: number, after: number];
  /** The messages of the call. */
  readonly heard?: readonly string[];
  /** The call takes permits, and none if it fails. All other calls take effect in the end, once. */
  readonly takes?: true;
}

const isId: unknown = expect.stringMatching(/^[0-9a-f]{32}$/);

export const operations: Readonly<Record<string, Operation>> = {
  "semaphore trySetPermits": {
    call: (site) => site.semaphore().trySetPermits(5),
    gives: true,
    heard: ["5"],
    value: [null, "5"],
  },
  "semaphore trySetPermits, too late": {
    call: (site) => site.semaphore().trySetPermits(5),
    gives: false,
    value: ["5", "5"],
  },
  "semaphore acquire": { call: (site) => site.semaphore().acquire(2), value: ["5", "3"], takes: true },
  "semaphore tryAcquire": {
    call: (site) => site.semaphore().tryAcquire(3),
    gives: true,
    value: ["5", "2"],
    takes: true,
  },
  "semaphore tryAcquire, refused": {
    call: (site) => site.semaphore().tryAcquire(6),
    gives: false,
    value: ["5", "5"],
    takes: true,
  },
  "semaphore release": { call: (site) => site.semaphore().release(2), heard: ["7"], value: ["5", "7"] },
  "semaphore release that makes it": {
    call: (site) => site.semaphore().release(2),
    heard: ["2"],
    value: [null, "2"],
  },
  "semaphore addPermits": { call: (site) => site.semaphore().addPermits(3), heard: ["8"], value: ["5", "8"] },
  "semaphore drainPermits": {
    call: (site) => site.semaphore().drainPermits(),
    gives: 5,
    value: ["5", "0"],
    takes: true,
  },
  "permits trySetPermits": {
    call: (site) => site.permits().trySetPermits(5),
    gives: true,
    heard: ["5"],
    value: [null, "5"],
    used: [0, 0],
  },
  "permits acquire": {
    call: (site) => site.permits().acquire(),
    gives: isId,
    value: ["5", "4"],
    used: [0, 1],
    takes: true,
  },
  "permits acquire with a lease": {
    call: (site) => site.permits().acquire({ lease: 30_000 }),
    gives: isId,
    value: ["5", "4"],
    used: [0, 1],
    takes: true,
  },
  "permits tryAcquire": {
    call: (site) => site.permits().tryAcquire(0, 30_000),
    gives: isId,
    value: ["5", "4"],
    used: [0, 1],
    takes: true,
  },
  "permits tryAcquire, refused": {
    call: (site) => site.permits().tryAcquire(0, 30_000),
    gives: null,
    value: ["0", "0"],
    used: [0, 0],
    takes: true,
  },
  "permits release": {
    call: (site, id) => site.permits().release(id),
    heard: ["5"],
    value: ["4", "5"],
    used: [1, 0],
  },
  "permits tryRelease": {
    call: (site, id) => site.permits().tryRelease(id),
    gives: true,
    heard: ["5"],
    value: ["4", "5"],
    used: [1, 0],
  },
  "permits tryRelease, unknown": {
    call: (site) => site.permits().tryRelease(UNKNOWN),
    gives: false,
    value: ["4", "4"],
    used: [1, 1],
  },
  "permits updateLeaseTime": {
    call: (site, id) => site.permits().updateLeaseTime(id, 60_000),
    gives: expect.toBeOneOf([undefined, true]),
    value: ["4", "4"],
    used: [1, 1],
  },
  "permits setPermits": {
    call: (site) => site.permits().setPermits(8),
    heard: ["8"],
    value: ["4", "7"],
    used: [1, 1],
  },
  "permits addPermits": {
    call: (site) => site.permits().addPermits(3),
    heard: ["3"],
    value: ["4", "7"],
    used: [1, 1],
  },
  "latch trySetCount": {
    call: (site) => site.latch().trySetCount(3),
    gives: true,
    heard: ["1"],
    value: [null, "3"],
  },
  "latch trySetCount, too late": {
    call: (site) => site.latch().trySetCount(3),
    gives: false,
    value: ["3", "3"],
  },
  "latch countDown": { call: (site) => site.latch().countDown(), value: ["3", "2"] },
  "latch countDown, missing": { call: (site) => site.latch().countDown(), value: [null, null] },
  "latch countDown, the last": { call: (site) => site.latch().countDown(), heard: ["0"], value: ["1", null] },
};

const EACH_SORT = [
  "semaphore trySetPermits",
  "semaphore acquire",
  "semaphore release",
  "permits acquire",
  "permits release",
  "latch countDown",
];

export type Named = readonly [name: string, operation: Operation];

/** Whether a call stands for its sort, where a test is about the connection and not about the call's script. */
export const isOfEachSort = ([name]: Named): boolean => EACH_SORT.includes(name);

/** Prepares the state before the operation; returns the id of the permit in use, if there is one. */
export async function prepare(
  site: Site,
  { value: [free], used: [used] = [0, 0] }: Operation,
): Promise<string> {
  if (free !== null) await site.redis.set(site.name, Number(free) + used);
  return used === 0 ? "" : site.permits().acquire();
}

const MOMENTS = { before: 0, after: 1 } as const;

/** The state is that before the operation, or that after it. */
export async function expectAsIs(
  site: Site,
  { value, used }: Operation,
  when: "before" | "after",
): Promise<void> {
  const at = MOMENTS[when];
  expect(await site.value()).toBe(value[at]);
  if (used) await site.expectPermits(Number(value[at]), used[at]);
  else await site.expectOnly(value[at]);
}

/** Whether the permits are as before the operation, or as after it. */
export async function isAsIs(
  site: Site,
  { value, used }: Operation,
  when: "before" | "after",
): Promise<boolean> {
  const at = MOMENTS[when];
  if ((await site.value()) !== value[at]) return false;
  return used === undefined || (await site.entries()).size === used[at];
}
