// holdfast at work: several processes book payments into one account book, first without a lock, then with one.
//
//   npm run demo                                    sets up, builds, runs this
//   node examples/demo/main.mjs [timeline.svg]      the built library is enough
//
// In a terminal it stays at the end, with the inspector at a URL, until Ctrl-C. It ends by itself with --no-browser, in CI, and
// where its output goes elsewhere; --browser makes it stay there too.
//
// tasks.mjs has all that a process does with its lock; steps.mjs has what is done and checked. The exit code is 1 if an
// update was lost under the lock or a step did not happen.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { LockClient } from "holdfast";
import { killAll } from "../children.mjs";
import { startServer } from "../server.mjs";
import { AccountBook, readPayments } from "./account-book.mjs";
import { Clerk } from "./clerk.mjs";
import { now } from "./clock.mjs";
import { DaySheet } from "./day-sheet.mjs";
import { Screen } from "./screen.mjs";
import { steps } from "./steps.mjs";
import { drawSvg } from "./svg.mjs";
import { Timeline } from "./timeline.mjs";
import { openInspector, workOn } from "./visit.mjs";

const NAMES = ["Ada", "Ben", "Cleo", "Dan"];
/**
 * Short, so that the lease of a killed process is soon over; longer where processes may stand still for so long, as beside
 * other tests. The library's default is 30 s.
 */
const LEASE = Number(process.env.HOLDFAST_DEMO_LEASE ?? 1_000);
const STEP_LIMIT = 10 * LEASE;
const BETWEEN_STEPS = 250;
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
const { values: FLAGS, positionals } = parseArgs({
  allowPositionals: true,
  options: { browser: { type: "boolean" }, "no-browser": { type: "boolean" } },
});
/** Somebody is there who can look at the inspector, and end it. */
const STAYS = FLAGS.browser ?? (!FLAGS["no-browser"] && process.stdout.isTTY === true && !process.env.CI);
const SVG = positionals[0] ?? fileURLToPath(new URL("../../out/timeline.svg", import.meta.url));

const screen = new Screen(process.stdout);
const directory = mkdtempSync(join(tmpdir(), "holdfast-demo-"));
let leaving = false;
let visiting = false;

async function demo() {
  screen.say("holdfast: 4 clerks, a process each, book payments into one file and share one lock in Redis.");
  const server = await startServer(directory);
  const bookPath = join(directory, "account-book.json");
  const clerks = NAMES.map((name) => new Clerk(name, [server.port, LEASE, bookPath]));
  const client = LockClient.connect({ host: "127.0.0.1", port: server.port });
  await Promise.all(clerks.map((clerk) => clerk.ask("arrive")));
  const pids = clerks.map(({ name, pid }) => `${name} ${pid}`).join(", ");
  screen.say(`Processes: ${server.program} ${server.pid} on port ${server.port}, ${pids}.`, "faint");
  screen.say();
  screen.legend();

  const timeline = new Timeline(clerks);
  const book = new AccountBook(bookPath);
  const payments = readPayments();
  const sheet = new DaySheet(book, payments);
  const lock = client.getLock("account-book");
  await runSteps(timeline, { clerks, book, payments, sheet, lock, lease: LEASE });
  // Interrupted: half a timeline is not worth a picture.
  if (leaving) return 1;
  mkdirSync(dirname(SVG), { recursive: true });
  writeFileSync(SVG, drawSvg(timeline));
  const code = summary(timeline);
  if (code === 0 && STAYS) await visit(client, clerks);
  // After a failure a clerk may be busy for long.
  if (code === 0) await Promise.all([client.close(), ...clerks.map((clerk) => clerk.leave())]);
  return code;
}

/** Until a signal ends it, which is no failure then. */
async function visit(client, clerks) {
  const url = await openInspector(client);
  workOn(clerks);
  screen.say();
  screen.say(`The clerks go on. Who holds, who waits: ${url} (Ctrl-C ends it)`, "title");
  visiting = true;
  await new Promise(() => {});
}

/** One after the other; after one that failed the others would prove nothing. */
async function runSteps(timeline, context) {
  for (const plan of steps) {
    const step = timeline.begin(plan);
    screen.begin(timeline, step);
    try {
      step.lines = await withinLimit(plan.run(context));
      step.ok = true;
    } catch (error) {
      step.lines = [error.message];
      step.ok = false;
    }
    step.to = now();
    screen.end(step, step.ok, step.lines);
    if (!step.ok) return;
    await sleep(BETWEEN_STEPS);
  }
}

async function withinLimit(work) {
  const stop = new AbortController();
  const tooLong = sleep(STEP_LIMIT, undefined, { signal: stop.signal }).then(() => {
    throw new Error(`the step was not over within ${STEP_LIMIT / 1_000} s`);
  });
  try {
    return await Promise.race([work, tooLong]);
  } finally {
    stop.abort();
  }
}

function summary(timeline) {
  const rows = steps.map(({ title }, i) => {
    const step = timeline.steps[i];
    return { ok: step?.ok === true, text: `${i + 1}  ${title}${step ? "" : " (not reached)"}` };
  });
  screen.table(rows);
  const good = rows.filter(({ ok }) => ok).length;
  screen.say();
  screen.say(
    good === rows.length
      ? `All ${good} steps happened, and no update was lost under the lock.`
      : `${good} of ${rows.length} steps happened.`,
    good === rows.length ? "good" : "bad",
  );
  const path = relative("", SVG);
  screen.say(`The timeline as a picture: ${path.startsWith("..") ? SVG : path}`);
  return good === rows.length ? 0 : 1;
}

process.on("exit", () => {
  screen.close();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
});

/** The first reason to leave counts. */
async function leave(code) {
  if (leaving) return;
  leaving = true;
  // What the clerks were asked for fails with them, and is no news.
  screen.close();
  await killAll();
  process.exit(code);
}

for (const [signal, code] of Object.entries(SIGNALS)) {
  process.on(signal, () => {
    screen.say(`\n${signal}: the demo ends here.`);
    leave(visiting ? 0 : code);
  });
}
// Whoever read the output does not any more.
process.stdout.on("error", () => leave(1));

try {
  await leave(await demo());
} catch (error) {
  screen.say(error.message, "bad");
  if (error.cause) screen.say(error.cause.message, "bad");
  await leave(1);
}
