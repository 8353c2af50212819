/** What a person at a terminal sees, and what a program gets: colours, questions, JSON; and documented exit codes. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { EXIT } from "../../../src/entries/cli/command.js";
import type { Hold } from "../../../src/index.js";
import { until } from "../../support/index.js";
import { PROGRAM, useSite } from "./program.js";

const site = await useSite();
const COLOUR = "\u001b[";

/** Runs the program at a terminal of its own, by util-linux' `script`. `typed` is typed when the program asks. */
async function atTerminal(
  args: readonly string[],
  typed: string | (() => Promise<string>) = "",
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  const command = [process.execPath, PROGRAM, ...args].map((word) => `'${word}'`).join(" ");
  const { NO_COLOR: _, ...own } = process.env;
  const running = promisify(execFile)("script", ["-qec", `${command}; echo "code $?"`, "/dev/null"], {
    env: { ...own, SHELL: "/bin/sh", TERM: "xterm", HOLDFAST_URL: site.server.url, ...env },
  });
  const { stdin, stdout } = running.child;
  if (typed === "") stdin?.end();
  let shown = "";
  let isAsked = false;
  stdout?.on("data", (part: string) => {
    shown += part;
    if (isAsked || !/\[y\/N\]/.test(shown)) return;
    isAsked = true;
    void Promise.resolve(typeof typed === "string" ? typed : typed()).then((text) => stdin?.end(text));
  });
  return (await running).stdout.replaceAll("\r", "");
}

/** Runs a shell's command at a terminal of its own. `shown`: what it has shown so far. */
function startAtTerminal(command: string) {
  const running = promisify(execFile)("script", ["-qec", command, "/dev/null"], {
    env: { ...process.env, SHELL: "/bin/sh", TERM: "xterm", HOLDFAST_URL: site.server.url },
  });
  let shown = "";
  running.child.stdout?.on("data", (part: string) => {
    shown += part;
  });
  return { running, shown: () => shown };
}

test("colours are for a terminal without NO_COLOR, and not for JSON", async () => {
  const hold = await site.client().getLock("red").lock();
  expect(await atTerminal(["ls"])).toContain(COLOUR);
  expect(await atTerminal(["ls"], "", { NO_COLOR: "1" })).not.toContain(COLOUR);
  expect(await atTerminal(["ls"], "", { TERM: "dumb" })).not.toContain(COLOUR);
  expect(await atTerminal(["ls", "--json"])).not.toContain(COLOUR);
  const piped = await promisify(execFile)(process.execPath, [PROGRAM, "ls"], {
    env: { ...process.env, NO_COLOR: "", HOLDFAST_URL: site.server.url },
  });
  expect(piped.stdout).toContain("red");
  expect(piped.stdout).not.toContain(COLOUR);
  await hold.unlock();
});

test("unlock shows who would lose it, asks, and does what was said", async () => {
  const client = site.client({ label: "orders-1" });
  const hold = await client.getLock("asked").lock();
  for (const answer of ["n\n", "\n", "\u0004"]) {
    const kept = await atTerminal(["unlock", "asked"], answer);
    expect(kept).toMatch(/● .*\n[\s\S]*Take it away\? \[y\/N\][\s\S]*code 1\n$/);
    expect(kept).toContain(hold.ownerId);
    expect(await client.getLock("asked").isLocked()).toBe(true);
  }
  expect(await atTerminal(["unlock", "asked"], "y\n")).toMatch(/Unlocked\.[\s\S]*code 0\n$/);
  expect(await client.getLock("asked").isLocked()).toBe(false);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

test.each([
  ["with --json", (words: string) => `${words} --json`, /^\{"unlocked":true\}$/m],
  ["whose output goes to a file", (words: string) => `sh -c '"$0" "$@" > /dev/null' ${words}`, /\[y\/N\]/],
])("unlock %s shows who would lose it where it asks [B251]", async (name, of, also) => {
  const hold = await site.client({ label: "orders-2" }).getLock(name).lock();
  const { running, shown } = startAtTerminal(of(`'${process.execPath}' '${PROGRAM}' unlock '${name}'`));
  await until("it asks", () => /\[y\/N\]/.test(shown()));
  expect(shown()).toMatch(new RegExp(`● .*${hold.ownerId}[^]*\\[y/N\\]`));
  running.child.stdin?.end("y\n");
  expect((await running).stdout.replaceAll("\r", "")).toMatch(also);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

test("unlock takes a lock from nobody but those whom it has shown [B160]", async () => {
  const lock = site.client().getLock("handed on");
  const shown = await lock.lock();
  let next: Hold | undefined;
  const said = await atTerminal(["unlock", "handed on"], async () => {
    await shown.unlock();
    next = await lock.lock();
    return "y\n";
  });
  expect(said).toMatch(/Others hold it by now\.[\s\S]*code 1\n$/);
  expect(await lock.isLocked()).toBe(true);
  await next?.unlock();
});

test("a signal ends it while it asks [B143]", async () => {
  const hold = await site.client().getLock("left").lock();
  const command = `sh -c 'echo process $$; exec "${process.execPath}" "${PROGRAM}" unlock left'; echo "code $?"`;
  const { running, shown } = startAtTerminal(command);
  await until("it asks", () => /\[y\/N\]/.test(shown()));
  process.kill(Number(/process (\d+)/.exec(shown())?.[1]), "SIGTERM");
  expect((await running).stdout).toMatch(/code 143\r?\n$/);
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
});

test.each([
  ["Ctrl-C", "\u0003", 130],
  ["Ctrl-\\", "\u001c", 131],
])("%s ends it while it asks, as the signal does [B252]", async (key, typed, code) => {
  const hold = await site.client().getLock(`left by ${key}`).lock();
  const { running, shown } = startAtTerminal(
    `ulimit -c 0; exec '${process.execPath}' '${PROGRAM}' unlock 'left by ${key}' --json`,
  );
  const ended = running.then(() => 0).catch((error: { code: number }) => error.code);
  await until("it asks", () => /\[y\/N\]/.test(shown()));
  running.child.stdin?.write(typed);
  expect(await ended).toBe(code);
  expect(shown()).not.toContain("unlocked");
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
});

test.each([
  ["the terminal", "Ctrl-C", "\u0003", "exec "],
  // The shell hears the key too. Some shells end of it, whatever the command does.
  ["a pipe", "Ctrl-C", "\u0003", "trap : INT; true | "],
  ["the terminal", "Ctrl-\\", "\u001c", "exec "],
])("a command whose input is %s gets %s once [B175] [B206]", async (_, _key, typed, before) => {
  const counting = `let times = 0;
    const heard = () => console.log("heard " + ++times);
    process.on("SIGINT", heard).on("SIGQUIT", heard).on("SIGTERM", () => process.exit(times));
    setInterval(() => {}, 1_000);
    console.log("runs below " + process.ppid);`;
  const words = [process.execPath, PROGRAM, "run", "typed", "--", process.execPath, "-e", counting];
  const command = `${before}${words.map((word) => `'${word}'`).join(" ")}`;
  const { running, shown } = startAtTerminal(command);
  const code = running.catch((error: { code: number }) => error.code);
  await until("it runs", () => /runs below \d+/.test(shown()));
  running.child.stdin?.write(typed);
  await until("it has heard", () => shown().includes("heard"));
  const [, pid] = /below (\d+)/.exec(shown()) ?? [];
  process.kill(Number(pid), "SIGTERM");
  expect(await code).toBe(1);
  expect(shown()).not.toContain("heard 2");
});

test.each([
  [["ls"], "array"],
  [["waiters"], "array"],
  [["deadlocks"], "array"],
  [["doctor"], "array"],
  [["get", "shown"], "object"],
  [["unlock", "shown", "--yes"], "object"],
])("--json of %j is one document, and nothing else", async (args, shape) => {
  const hold = await site.client().getLock("shown").lock();
  const { out, err } = await site.run(...args, "--json");
  const parsed: unknown = JSON.parse(out);
  expect([Array.isArray(parsed) ? "array" : typeof parsed, err]).toEqual([shape, ""]);
  expect(out.trimEnd().split("\n")).toHaveLength(1);
  await hold.unlock().catch(() => undefined);
});

test("--json of watch is a document in each line", async () => {
  const watching = site.start("watch", "lines", "--every", "100ms", "--json");
  await watching.says(/"what":"free"/);
  const hold = await site.client().getLock("lines").lock();
  await watching.says(/"what":"granted"/);
  await hold.unlock();
  await watching.says(/"what":"released"/);
  watching.child.kill("SIGINT");
  const { out } = await watching.ended;
  for (const line of out.trimEnd().split("\n")) {
    const { at, what } = JSON.parse(line) as { at: string; what: string };
    expect([Number.isNaN(Date.parse(at)), typeof what]).toEqual([false, "string"]);
  }
});

test.each([[["ls", "--json"]], [["ls", "--watch"]], [["--help"]]])(
  "output that cannot be written is no success: %j [B211]",
  async (args) => {
    const words = [process.execPath, PROGRAM, ...args].map((word) => `'${word}'`).join(" ");
    const running = promisify(execFile)("sh", ["-c", `${words} > /dev/full`], {
      env: { ...process.env, HOLDFAST_URL: site.server.url },
    });
    await expect(running).rejects.toMatchObject({
      code: 70,
      stderr: expect.stringMatching(/^holdfast: the output cannot be written: ENOSPC.*\n$/),
    });
  },
);

test("the page has every exit code", async () => {
  const page = await readFile(new URL("../../../docs/cli.md", import.meta.url), "utf8");
  const [, table = ""] = /## Exit codes\n([\s\S]*?)\n## /.exec(page) ?? [];
  const listed = [...table.matchAll(/^\| ([\d, ]+) +\|/gm)].flatMap(([, codes = ""]) => codes.split(","));
  expect(listed.map(Number).sort()).toEqual(Object.values(EXIT).map(Number).sort());
});
