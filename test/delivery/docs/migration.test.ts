/**
 * The tables of the migration pages: the code in their column "here" is run, row by row; types.test.ts checks its
 * types. After the code there may be its value, or how it rejects: `lock.tryLock()` → `Hold`.
 */
import { describe, expect, test } from "vitest";
import { forFile } from "../../support/index.js";
import { MIGRATION_PAGES, pageWith, programOf, rowsOf } from "./migration-rows.js";
import { BlockRunner } from "./runner.js";

/** Milliseconds: long, because a page has many rows and some of them wait. */
const LONGEST_PAGE = 60_000;

/** What a page must mention, because readers look for it. */
const NAMED: Readonly<Record<string, string>> = {
  "docs/migrate-redlock.md":
    "acquire; extend; release; using; quit; disposer; lock.unlock(); lockWithOptions; " +
    "driftFactor; retryCount; retryDelay; retryJitter; automaticExtensionThreshold; lockScript; " +
    "lock.expiration; lock.value; lock.resources; lock.resource; lock.attempts; signal.error; " +
    "ResourceLockedError; ExecutionError; LockError; attemptsRemaining; clientError",
  "docs/migrate-redis-semaphore.md":
    "Mutex; Semaphore; MultiSemaphore; RedlockMutex; RedlockSemaphore; RedlockMultiSemaphore; " +
    "acquireAttemptsLimit; retryInterval; acquireTimeout; lockTimeout; refreshInterval; " +
    "stopRefresh; onLockLost; isAcquired; identifier; acquiredExternally; tryAcquire; " +
    "LostLockError; TimeoutError; maxCount",
  "docs/migrate-redisson.md":
    "lockInterruptibly; isHeldByCurrentThread; isHeldByThread; tryLock(wait, unit); tryLock(wait, " +
    "lease, unit); forceUnlock; remainTimeToLive; getHoldCount; getToken; newCondition; " +
    "lockAndGetToken; getMultiLock; RedissonRedLock; getSpinLock; lockWatchdogTimeout; " +
    "fairLockWaitTimeout; nameMapper; checkLockSyncedSlaves; releaseIfExists; trySetPermits(n, " +
    "duration); getLeaseTime; addListener; lockWatchdogBatchSize; IllegalMonitorStateException; " +
    "InterruptedException; updateLeaseTime; trySetCount",
};

const runner = await forFile(BlockRunner.start());
test("each page is known here", () => {
  expect(MIGRATION_PAGES.map(({ file }) => file).sort()).toEqual(Object.keys(NAMED).sort());
});

describe.each(MIGRATION_PAGES)("$file", (page) => {
  const rows = rowsOf(page);

  test(`its ${rows.length} rows with code do what they say`, async () => {
    expect(rows.length).toBeGreaterThan(20);
    await runner.run(programOf(page, true), LONGEST_PAGE);
  });

  test("the page names everything that its readers used before", () => {
    expect(NAMED[page.file]?.split("; ").filter((name) => !page.text.includes(name))).toEqual([]);
  });
});

test.each([
  ["another value", "`lock.isLocked()` → `true`", "it gave false, not true"],
  ["another rejection", "`lock.unlock()` rejects `LOCK_LOST`", "rejected with NOT_OWNER"],
  ["a rejection that does not come", "`lock.isLocked()` rejects `NOT_OWNER`", "it gave false"],
])("%s in a row is noticed, with its line of the page", async (_what, cell, message) => {
  const failed = runner.run(programOf(pageWith(cell), true));
  await expect(failed).rejects.toThrow(message);
  await expect(failed).rejects.toThrow(/^docs\/page\.md:5 /);
});
