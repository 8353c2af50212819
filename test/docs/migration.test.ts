/**
 * The tables of the migration pages: the code in their column "here" is run, row by row, and type-checked as a reader's
 * compiler would. After the code there may be its value, or how it rejects: `lock.tryLock()` → `Hold`.
 */
import { describe, expect, test } from "vitest";
import { forFile } from "../support/index.js";
import { allPages, type Block, type Page } from "./pages.js";
import { BlockRunner } from "./runner.js";
import { typeErrors } from "./types.js";

const HEADING = "here";
/** Milliseconds: long, because a page has many rows and some of them wait. */
const LONGEST_PAGE = 60_000;

/** Names that a page must mention, because readers look for them. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  "docs/migrate-redlock.md": [
    ...["acquire", "extend", "release", "using", "quit", "disposer", "lock.unlock()", "lockWithOptions"],
    ...[
      "driftFactor",
      "retryCount",
      "retryDelay",
      "retryJitter",
      "automaticExtensionThreshold",
      "lockScript",
    ],
    ...["lock.expiration", "lock.value", "lock.resources", "lock.resource", "lock.attempts", "signal.error"],
    ...["ResourceLockedError", "ExecutionError", "LockError", "attemptsRemaining", "clientError"],
  ],
  "docs/migrate-redis-semaphore.md": [
    ...["Mutex", "Semaphore", "MultiSemaphore", "RedlockMutex", "RedlockSemaphore", "RedlockMultiSemaphore"],
    ...["acquireAttemptsLimit", "retryInterval", "acquireTimeout", "lockTimeout", "refreshInterval"],
    ...["stopRefresh", "onLockLost", "isAcquired", "identifier", "acquiredExternally", "tryAcquire"],
    ...["LostLockError", "TimeoutError", "maxCount"],
  ],
  "docs/migrate-redisson.md": [
    ...["lockInterruptibly", "isHeldByCurrentThread", "isHeldByThread", "tryLock(wait, unit)"],
    ...["tryLock(wait, lease, unit)", "forceUnlock", "remainTimeToLive", "getHoldCount", "getLockInfo"],
    ...["newCondition", "lockAndGetToken", "getMultiLock", "RedissonRedLock", "getSpinLock"],
    ...["lockWatchdogTimeout", "fairLockWaitTimeout", "nameMapper", "checkLockSyncedSlaves"],
    ...["IllegalMonitorStateException", "InterruptedException", "updateLeaseTime", "trySetCount"],
  ],
};

/** Names that the rows may use. Each is made for the row that uses it; `$` stands for the row's own name. */
const SCENE: readonly (readonly [name: string, code: string])[] = [
  ["lock", 'const lock = client.getLock("lock $");'],
  ["hold", "const hold = await lock.lock({ lease: 60_000 });"],
  ["busy", 'const busy = client.getLock("busy $"); await other.getLock("busy $").lock({ lease: 60_000 });'],
  [
    "lost",
    'const lost = await client.getLock("lost $").lock(); await client.getLock("lost $").forceUnlock();',
  ],
  ["semaphore", 'const semaphore = client.getSemaphore("semaphore $"); await semaphore.trySetPermits(5);'],
  [
    "permits",
    'const permits = client.getPermitExpirableSemaphore("permits $"); await permits.trySetPermits(5);',
  ],
  ["permit", "const permit = await permits.acquire({ lease: 60_000 });"],
  ["latch", 'const latch = client.getCountDownLatch("latch $"); await latch.trySetCount(1);'],
  ["redlock", "const redlock = new Redlock([new Redis()]);"],
  ["taken", 'const taken = await new Redlock([new Redis()]).acquire(["taken $"], 60_000);'],
];

const BEGINNING =
  'import { Redis } from "ioredis"; import { isLockError, LockClient, MultiLock, RedLock } from "holdfast"; ' +
  'import { createClient } from "redis"; import { fromNodeRedis } from "holdfast/node-redis"; ' +
  'import { Lock, Redlock } from "holdfast/redlock"; await other.getLock("busy").lock({ lease: 60_000 });';
const END = "await other.close({ timeout: 0 }); await redis.flushall();";

/** `code`, and the value or rejection that the page claims. */
interface Claim {
  readonly code: string;
  readonly word: string | undefined;
  readonly expected: string | undefined;
}

interface Row {
  /** Its line in the page, from 1. */
  readonly line: number;
  readonly claims: readonly Claim[];
}

/** The rows with code, of the tables that have the column. */
function rowsOf({ text }: Page): Row[] {
  let column = -1;
  return text.split("\n").flatMap((line, i) => {
    if (!line.startsWith("|")) {
      column = -1;
      return [];
    }
    const cells = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    if (column < 0) {
      column = cells.indexOf(HEADING);
      return [];
    }
    const claims = claimsOf(cells[column] ?? "");
    return claims.length > 0 ? [{ line: i + 1, claims }] : [];
  });
}

/** The code spans that are more than a name. */
function claimsOf(cell: string): Claim[] {
  const spans = [...cell.matchAll(/`([^`]+)`(?: (→|rejects) `([^`]+)`)?/g)];
  return spans
    .map(([, code = "", word, expected]) => ({ code, word, expected }))
    .filter(({ code }) => /[.(]/.test(code));
}

/** All rows as one program, each on its line of the page; with `checked`, the checks of the sandbox are added. */
function programOf(page: Page, checked: boolean): Block {
  const lines: string[] = page.text.split("\n").map(() => "");
  for (const { line, claims } of rowsOf(page)) {
    const code = claims.map((claim) => (checked ? checkOf(claim, line) : `await (${claim.code});`)).join(" ");
    const scene: string[] = [];
    for (const [name, made] of [...SCENE].reverse()) {
      const isNamed = new RegExp(`\\b${name}\\b`).test([code, ...scene].join(" "));
      if (isNamed) scene.unshift(made.replaceAll("$", String(line)));
    }
    lines[line - 1] =
      `{ const client = new LockClient(redis); try { ${scene.join(" ")} ${code} } finally { await client.close({ timeout: 0 }); } }`;
  }
  lines[0] = BEGINNING;
  const place = `${page.file}:1`;
  return {
    place,
    file: page.file,
    line: 0,
    language: "ts",
    code: `${lines.join("\n")}\n${END}`,
  };
}

function checkOf({ code, word, expected }: Claim, line: number): string {
  const claim = `${JSON.stringify(expected)}, ${line}`;
  if (word === "→") return `$gives(await (${code}), ${claim});`;
  if (word === "rejects") return `await $rejects(async () => (${code}), ${claim});`;
  return `await (${code});`;
}

const pages = allPages().filter(({ file }) => file.startsWith("docs/migrate-"));

const runner = await forFile(BlockRunner.start());
describe.each(pages)("$file", (page) => {
  const rows = rowsOf(page);

  test(`its ${rows.length} rows with code do what they say`, async () => {
    expect(rows.length).toBeGreaterThan(20);
    await runner.run(programOf(page, true), LONGEST_PAGE);
  });

  test("the page names everything that its readers used before", () => {
    expect(NAMED[page.file]?.filter((name) => !page.text.includes(name))).toEqual([]);
  });
});

function pageWith(cell: string): Page {
  return { file: "docs/page.md", text: `# Page\n\n| there | here |\n| - | - |\n| \`a\` | ${cell} |\n` };
}

// One program for all rows, because the compiler takes seconds for each program.
test("all rows have the types that a reader's compiler sees, and one that has not is noticed", () => {
  expect(pages).toHaveLength(Object.keys(NAMED).length);
  const programs = [...pages, pageWith("`lock.lock({ lase: 1 })`")].map((page) => programOf(page, false));
  expect(typeErrors(programs)).toEqual([expect.stringMatching(/^docs\/page\.md:5: .*'lase' does not exist/)]);
});

describe("what is wrong in a row is noticed, with its line of the page", () => {
  test.each([
    ["another value", "`lock.isLocked()` → `true`", "it gave false, not true"],
    ["another rejection", "`lock.unlock()` rejects `LOCK_LOST`", "rejected with NOT_OWNER"],
    ["a rejection that does not come", "`lock.isLocked()` rejects `NOT_OWNER`", "it gave false"],
    ["a call that is not there", "`lock.lokc()`", "lokc is not a function"],
  ])("%s", async (_what, cell, message) => {
    const failure = await runner.run(programOf(pageWith(cell), true)).then(
      () => "none",
      (error: Error) => error.message,
    );
    expect(failure).toContain(message);
    expect(failure).toMatch(/^docs\/page\.md:5 /);
  });
});
