/**
 * `npm run demo` without its set-up: it proves what it says, leaves nothing behind, and notices a lock that excludes no
 * process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { PATIENCE, until } from "../../support/index.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** Milliseconds for the start and all work of five processes on a busy machine. */
const LIMIT = { timeout: 6 * PATIENCE };
const STEPS = ["Without a lock", "With lock.run", "Nested", "In a scope", "Killed", "Watchdog", "Gives up"];
const CLERKS = ["Ada", "Ben", "Cleo", "Dan"];

let directory: string;
let demo: Demo | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-demo-test-"));
});

afterEach(async () => {
  // The demo runs on only after a failure. SIGTERM makes it end its children, too.
  if (demo?.child.exitCode === null) demo.child.kill("SIGTERM");
  await demo?.ended;
  demo = undefined;
  await rm(directory, { recursive: true, force: true });
});

/** A run of the demo, whose temporary files and picture go to the test's own directory. */
class Demo {
  output = "";
  readonly child: ChildProcess;
  /** The exit code. */
  readonly ended: Promise<number | null>;

  constructor(env: Record<string, string> = {}, ...flags: string[]) {
    const main = join(ROOT, "examples/demo/main.mjs");
    const child = spawn(process.execPath, [main, this.picture, ...flags], {
      env: { ...process.env, TMPDIR: directory, HOLDFAST_DEMO_LEASE: "4000", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
    }
    this.child = child;
    this.ended = once(child, "close").then(() => child.exitCode);
  }

  get picture(): string {
    return join(directory, "timeline.svg");
  }

  /** The ids of the server's and the clerks' processes, as the demo prints them. */
  get pids(): number[] {
    const line = /^Processes: .*$/m.exec(this.output)?.[0] ?? "";
    return [...line.matchAll(/(?:server\S*|Ada|Ben|Cleo|Dan) (\d+)/g)].map(([, pid]) => Number(pid));
  }

  async expectNothingLeft(): Promise<void> {
    expect(this.pids).toHaveLength(1 + CLERKS.length);
    expect(this.pids.filter(isAlive)).toEqual([]);
    expect((await readdir(directory)).filter((name) => name !== "timeline.svg")).toEqual([]);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test(
  "the demo does all its steps, draws what happened, and then shows the clerks at work",
  LIMIT,
  async () => {
    const run = new Demo({}, "--browser");
    demo = run;
    const shown = /http:\/\/localhost:\d+\//;
    await until("it stays or has ended", () => shown.test(run.output) || run.child.exitCode !== null, {
      timeout: 5 * PATIENCE,
    });
    const { output } = run;
    const url = shown.exec(output)?.[0];
    expect({ url, output }).toMatchObject({ url: expect.any(String) });
    expect(await (await fetch(url ?? "")).text()).toContain("<title>Locks · holdfast</title>");
    await until("a clerk holds the account book", async () => {
      const { locks } = (await (await fetch(`${url}api/locks`)).json()) as { locks: { name: string }[] };
      return locks.some(({ name }) => name === "account-book");
    });
    run.child.kill("SIGINT");
    expect(await run.ended).toBe(0);
    for (const [i, title] of STEPS.entries())
      expect(output).toMatch(new RegExp(`^  ✓ ${i + 1}  ${title}`, "m"));
    expect(output, "plain text").not.toContain("\x1b");

    const svg = await readFile(demo.picture, "utf8");
    for (const state of ["holds", "waits", "no-lock", "nested", "lapsing", "renewed", "killed", "gave-up"])
      expect(svg).toContain(`class="${state}"`);
    await demo.expectNothingLeft();
  },
);

test("a lock that locks nobody out is noticed", LIMIT, async () => {
  demo = new Demo({ HOLDFAST_DEMO_BREAK: "lock" });
  expect(await demo.ended).toBe(1);
  expect(demo.output).toMatch(/✗ \d+ updates were LOST UNDER THE LOCK/);
  expect(demo.output).toMatch(/✗ 2 {2}With lock\.run/);
  await demo.expectNothingLeft();
});
