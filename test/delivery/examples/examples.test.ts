/** Each example proves what it says, and notices when it is broken; one that starts many servers is broken by nobody. */
import { expect, test } from "vitest";
import { type Change, type Ended, runExample } from "./run.js";

/** Long, because each example starts several processes. */
const LIMIT = { timeout: 150_000 };
/** How often a broken example runs, at most: where processes race, a busy machine may hide the mistake once. */
const MOST_RUNS = 5;

interface Row {
  readonly file: string;
  /** What it prints when everything is as it says. */
  readonly says: readonly RegExp[];
  readonly broken?: Change;
  /** What it prints then, after AssertionError. Default: anything. */
  readonly noticed?: RegExp;
}

const ROWS: readonly Row[] = [
  {
    file: "order-stock.mjs",
    says: [/60 pieces were there, 60 were sold, none of them twice/],
    broken: { from: 'client.getLock("stock:42")', to: "client.getLock(String(process.pid))" },
    noticed: /a piece was sold twice/,
  },
  {
    file: "submit-throttle.mjs",
    says: [/a double click, on two processes: accepted once/],
    broken: { from: "client.getLock(nameOf(form))", to: "client.getLock(nameOf(form) + process.pid)" },
    noticed: /a double click is accepted once/,
  },
  {
    file: "scheduled-job.mjs",
    says: [/record: \[ 1, 1, 1 \], lease: \[ 1, 1, 1 \]/],
    broken: { from: 'if (Number(await redis.get("report:done")) >= tick) return;', to: "" },
    noticed: /lock and record: once at each tick/,
  },
  {
    file: "document.mjs",
    says: [/no reader saw half a version, and the writer was never kept out/],
    broken: { from: "lock.readLock().run(", to: "((fn) => fn())(" },
    noticed: /a half-written document was read/,
  },
  {
    file: "parking-lot.mjs",
    says: [/all 18 got in, never more than 3 places were taken/],
    broken: { from: "{ permits: places }", to: "{ permits: 1 }" },
    noticed: /as many inside as there are places, and never more/,
  },
  {
    file: "ticket-window.mjs",
    says: [/cem has left; served within \d+ ms: ada, ben, dot, eva, fay, gus/],
    broken: { from: "client.getFairLock(", to: "client.getLock(" },
    noticed: /ada stands in the queue/,
  },
  {
    file: "cancel-wait.mjs",
    says: [/nobody waits, nobody listens, nothing is locked/],
    broken: { from: "{ signal: browser.signal }", to: "{}" },
    noticed: /the server's wait has ended/,
  },
  {
    file: "lost-hold.mjs",
    says: [/Ada comes back and is told: lock "thesis" was lost/],
    broken: { from: "        hold.assertHeld();\n", to: "" },
    noticed: /isHeld, assertHeld\(\) and signal/,
  },
  {
    file: "await-using.ts",
    says: [/each block gave back what it took/],
    broken: { from: "await using client", to: "const client" },
    noticed: /Missing expected rejection/,
  },
  {
    file: "start-together.mjs",
    says: [/all have started, and were done \d+ ms later/],
    broken: { from: "  await gate.await();\n", to: "" },
    noticed: /nobody starts before the last is ready/,
  },
  {
    file: "from-redlock.mjs",
    says: [/bridge and new side by side: no sale lost/],
  },
  {
    file: "from-redisson.mjs",
    says: [/Java gives back, and Node has it after \d+ ms/],
    broken: { from: 'client.getLock("stock")', to: 'client.getLock("stack")' },
    noticed: /what Redisson writes/,
  },
  {
    file: "from-redis-semaphore.mjs",
    says: [/semaphores side by side: at most \d of 5, and later \d/],
  },
  {
    file: "accounts.mjs",
    says: [/no money was made or lost/],
    broken: { from: "new MultiLock(account(from), account(to))", to: "account(from)" },
    noticed: /no money was made or lost/,
  },
  {
    file: "redlock.mjs",
    says: [/two of them killed: 160 seats booked, none twice/, /three of them killed: QUORUM/],
  },
  {
    file: "fenced-write/main.mjs",
    says: [/lock alone: +\{ bens: 1, adas: 1/, /refused the late write/],
    broken: { file: "fenced-write/writer-process.mjs", from: "AND fence < CAST(?2 AS INTEGER)", to: "" },
  },
  {
    file: "sentinel/main.mjs",
    says: [/The new master has renewed Ada's hold/, /Ben has it within \d+ ms/],
  },
];

test.each(ROWS)("$file proves what it says, and notices when it is broken", LIMIT, async (row) => {
  const right = await runExample(row.file);
  for (const said of row.says) expect(right.output).toMatch(said);
  expect(right.code).toBe(0);
  if (!row.broken) return;
  const noticed = row.noticed ?? /AssertionError/;
  let wrong: Ended = { code: 0, output: "" };
  for (let i = 0; i < MOST_RUNS && !noticed.test(wrong.output); i++)
    wrong = await runExample(row.file, row.broken);
  expect(wrong.output).toMatch(noticed);
  expect(wrong.output).toMatch(/AssertionError/);
  expect(wrong.code).toBe(1);
});
