/** The rows of the migration pages' tables, as programs. */
import { allPages, type Block, type Page } from "./pages.js";

const HEADING = "here";

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
export function rowsOf({ text }: Page): Row[] {
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
export function programOf(page: Page, checked: boolean): Block {
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
  return { place, file: page.file, line: 0, language: "ts", code: `${lines.join("\n")}\n${END}` };
}

function checkOf({ code, word, expected }: Claim, line: number): string {
  const claim = `${JSON.stringify(expected)}, ${line}`;
  if (word === "→") return `$gives(await (${code}), ${claim});`;
  if (word === "rejects") return `await $rejects(async () => (${code}), ${claim});`;
  return `await (${code});`;
}

export const MIGRATION_PAGES: readonly Page[] = allPages().filter(({ file }) =>
  file.startsWith("docs/migrate-"),
);

/** A page of one row. */
export function pageWith(cell: string): Page {
  return { file: "docs/page.md", text: `# Page\n\n| there | here |\n| - | - |\n| \`a\` | ${cell} |\n` };
}
