/** Every call that changes something, for tests that make its requests and replies go astray. */
import { expect } from "vitest";
import { type Site, UNKNOWN } from "./helpers.js";

export interface Operation {
  /** What is there before the call; gives what the call needs. */
  readonly before: (site: Site) => Promise<string>;
  readonly call: (site: Site, id: string) => Promise<unknown>;
  /** What the call resolves with. */
  readonly gives: unknown;
  /** The permits in use before and after it, of an expirable semaphore. */
  readonly used?: readonly [before: number, after: number];
  /** What is at the name before it and after it. */
  readonly value: readonly [before: string | null, after: string | null];
  /** Takes permits: a call that failed has taken none. The others take effect in the end, once. */
  readonly takes?: true;
}

const nothing = async (): Promise<string> => "";

const five = async (site: Site): Promise<string> => {
  await site.redis.set(site.name, "5");
  return "";
};

const counted =
  (count: number) =>
  async (site: Site): Promise<string> => {
    await site.redis.set(site.name, count);
    return "";
  };

/** Five permits, one of which is taken. */
const taken = async (site: Site): Promise<string> => {
  await five(site);
  return site.permits().acquire();
};

const isId: unknown = expect.stringMatching(/^[0-9a-f]{32}$/);

export const operations: Readonly<Record<string, Operation>> = {
  "semaphore trySetPermits": {
    before: nothing,
    call: (site) => site.semaphore().trySetPermits(5),
    gives: true,
    value: [null, "5"],
  },
  "semaphore trySetPermits, too late": {
    before: five,
    call: (site) => site.semaphore().trySetPermits(5),
    gives: false,
    value: ["5", "5"],
  },
  "semaphore acquire": {
    before: five,
    call: (site) => site.semaphore().acquire(2),
    gives: undefined,
    value: ["5", "3"],
    takes: true,
  },
  "semaphore tryAcquire": {
    before: five,
    call: (site) => site.semaphore().tryAcquire(3),
    gives: true,
    value: ["5", "2"],
    takes: true,
  },
  "semaphore tryAcquire, refused": {
    before: five,
    call: (site) => site.semaphore().tryAcquire(6),
    gives: false,
    value: ["5", "5"],
    takes: true,
  },
  "semaphore release": {
    before: five,
    call: (site) => site.semaphore().release(2),
    gives: undefined,
    value: ["5", "7"],
  },
  "semaphore release that makes it": {
    before: nothing,
    call: (site) => site.semaphore().release(2),
    gives: undefined,
    value: [null, "2"],
  },
  "semaphore addPermits": {
    before: five,
    call: (site) => site.semaphore().addPermits(3),
    gives: undefined,
    value: ["5", "8"],
  },
  "semaphore drainPermits": {
    before: five,
    call: (site) => site.semaphore().drainPermits(),
    gives: 5,
    value: ["5", "0"],
    takes: true,
  },
  "permits trySetPermits": {
    before: nothing,
    call: (site) => site.permits().trySetPermits(5),
    gives: true,
    value: [null, "5"],
    used: [0, 0],
  },
  "permits acquire": {
    before: five,
    call: (site) => site.permits().acquire(),
    gives: isId,
    value: ["5", "4"],
    used: [0, 1],
    takes: true,
  },
  "permits acquire with a lease": {
    before: five,
    call: (site) => site.permits().acquire({ lease: 30_000 }),
    gives: isId,
    value: ["5", "4"],
    used: [0, 1],
    takes: true,
  },
  "permits tryAcquire": {
    before: five,
    call: (site) => site.permits().tryAcquire(0, 30_000),
    gives: isId,
    value: ["5", "4"],
    used: [0, 1],
    takes: true,
  },
  "permits tryAcquire, refused": {
    before: counted(0),
    call: (site) => site.permits().tryAcquire(0, 30_000),
    gives: null,
    value: ["0", "0"],
    used: [0, 0],
    takes: true,
  },
  "permits release": {
    before: taken,
    call: (site, id) => site.permits().release(id),
    gives: undefined,
    value: ["4", "5"],
    used: [1, 0],
  },
  "permits tryRelease": {
    before: taken,
    call: (site, id) => site.permits().tryRelease(id),
    gives: true,
    value: ["4", "5"],
    used: [1, 0],
  },
  "permits tryRelease, unknown": {
    before: taken,
    call: (site) => site.permits().tryRelease(UNKNOWN),
    gives: false,
    value: ["4", "4"],
    used: [1, 1],
  },
  "permits updateLeaseTime": {
    before: taken,
    call: (site, id) => site.permits().updateLeaseTime(id, 60_000),
    gives: expect.toBeOneOf([undefined, true]),
    value: ["4", "4"],
    used: [1, 1],
  },
  "permits setPermits": {
    before: taken,
    call: (site) => site.permits().setPermits(8),
    gives: undefined,
    value: ["4", "7"],
    used: [1, 1],
  },
  "permits addPermits": {
    before: taken,
    call: (site) => site.permits().addPermits(3),
    gives: undefined,
    value: ["4", "7"],
    used: [1, 1],
  },
  "latch trySetCount": {
    before: nothing,
    call: (site) => site.latch().trySetCount(3),
    gives: true,
    value: [null, "3"],
  },
  "latch trySetCount, too late": {
    before: counted(3),
    call: (site) => site.latch().trySetCount(3),
    gives: false,
    value: ["3", "3"],
  },
  "latch countDown": {
    before: counted(3),
    call: (site) => site.latch().countDown(),
    gives: undefined,
    value: ["3", "2"],
  },
  "latch countDown, the last": {
    before: counted(1),
    call: (site) => site.latch().countDown(),
    gives: undefined,
    value: ["1", null],
  },
};

/** What is at the name now is as it was before the operation, or as it is after it. */
export async function expectAsIs(site: Site, operation: Operation, when: "before" | "after"): Promise<void> {
  const at = when === "before" ? 0 : 1;
  expect(await site.value()).toBe(operation.value[at]);
  if (operation.used) await site.expectPermits(Number(operation.value[at]), operation.used[at]);
  else await site.expectOnly(operation.value[at]);
}

/** Resolves when the permits are as they were before the operation, or as they are after it. */
export function isAsIs(operation: Operation, when: "before" | "after"): (site: Site) => Promise<boolean> {
  const at = when === "before" ? 0 : 1;
  return async (site) => {
    if ((await site.value()) !== operation.value[at]) return false;
    return operation.used === undefined || (await site.entries()).size === operation.used[at];
  };
}
