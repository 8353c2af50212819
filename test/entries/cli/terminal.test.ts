/** What a person at a terminal sees, and what a program gets: colours, questions, JSON; and documented exit codes. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { EXIT } from "../../../src/entries/cli/command.js";
import { until } from "../../support/index.js";
import { PROGRAM, useSite } from "./program.js";

const site = await useSite();
const COLOUR = "\u001b[";
const quoted = (...words: string[]) => words.map((word) => `'${word}'`).join(" ");
const holdfast = (...args: string[]) => quoted(process.execPath, PROGRAM, ...args);

/** Runs a shell's command at a terminal of its own, by util-linux' `script`. */
function atTerminal(command: string) {
  const env = { ...process.env, SHELL: "/bin/sh", TERM: "xterm", HOLDFAST_URL: site.server.url };
  const running = promisify(execFile)("script", ["-qec", command, "/dev/null"], { env });
  let shown = "";
  running.child.stdout?.on("data", (part: string) => {
    shown += part.replaceAll("\r", "");
  });
  return {
    says: async (text: RegExp) => (await until(`it shows ${text}`, () => text.exec(shown))) ?? [],
    type: (keys: string) => running.child.stdin?.write(keys),
    /** The exit code, and all that was shown. */
    ended: running.then(
      () => ({ code: 0, shown }),
      ({ code }: { code: number }) => ({ code, shown }),
    ),
  };
}

test("colours are for a terminal without NO_COLOR, and not for JSON", async () => {
  const hold = await site.client().getLock("red").lock();
  expect((await atTerminal(holdfast("ls")).ended).shown).toContain(COLOUR);
  expect(await site.shown(["ls"])).toContain(COLOUR);
  for (const env of [{ NO_COLOR: "1" }, { TERM: "dumb" }])
    expect(await site.shown(["ls"], env)).not.toContain(COLOUR);
  expect(await site.shown(["ls", "--json"])).not.toContain(COLOUR);
  expect((await site.main("ls")).out).not.toContain(COLOUR);
  await hold.unlock();
});

test("unlock shows who would lose it, asks, and does what was said", async () => {
  const lock = site.client({ label: "orders-1" }).getLock("asked");
  const hold = await lock.lock();
  const answer = async (keys: string) => {
    const asking = atTerminal(holdfast("unlock", "asked"));
    await asking.says(new RegExp(`● .*${hold.ownerId}\n[\\s\\S]*Take it away\\? \\[y/N\\]`));
    asking.type(keys);
    return asking.ended;
  };
  for (const { code } of await Promise.all(["n\n", "\n", "\u0004"].map(answer))) expect(code).toBe(1);
  expect(hold.isHeld).toBe(true);
  expect(await answer("y\n")).toEqual({ code: 0, shown: expect.stringContaining("Unlocked.") });
  expect(await lock.isLocked()).toBe(false);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

test.each([
  ["with --json", (command: string) => `${command} --json`, /^\{"unlocked":true\}$/m],
  [
    "whose output goes to a file",
    (command: string) => `sh -c '"$0" "$@" > /dev/null' ${command}`,
    /\[y\/N\]/,
  ],
])("unlock %s shows who would lose it where it asks [B251]", async (name, of, also) => {
  const hold = await site.client().getLock(name).lock();
  const asking = atTerminal(of(holdfast("unlock", name)));
  await asking.says(new RegExp(`● .*${hold.ownerId}[\\s\\S]*\\[y/N\\]`));
  asking.type("y\n");
  expect((await asking.ended).shown).toMatch(also);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

test("unlock takes a lock from nobody but those whom it has shown [B160]", async () => {
  const lock = site.client().getLock("handed on");
  const shown = await lock.lock();
  const asking = atTerminal(holdfast("unlock", "handed on"));
  await asking.says(/\[y\/N\]/);
  await shown.unlock();
  const next = await lock.lock();
  asking.type("y\n");
  expect(await asking.ended).toEqual({ code: 1, shown: expect.stringContaining("Others hold the lock") });
  await next.unlock();
});

test.each([
  ["SIGTERM", "", 143],
  ["Ctrl-C", "\u0003", 130],
  ["Ctrl-\\", "\u001c", 131],
])("%s ends it while it asks, as a signal does elsewhere [B143] [B252]", async (key, typed, code) => {
  const hold = await site.client().getLock(`left by ${key}`).lock();
  const command = holdfast("unlock", `left by ${key}`, "--json");
  const asking = atTerminal(`ulimit -c 0; echo "process $$"; exec ${command}`);
  const [, pid] = await asking.says(/process (\d+)[\s\S]*\[y\/N\]/);
  if (typed === "") process.kill(Number(pid), "SIGTERM");
  else asking.type(typed);
  expect(await asking.ended).toEqual({ code, shown: expect.not.stringContaining("unlocked") });
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
  const running = atTerminal(
    `${before}${holdfast("run", "typed", "--")} ${quoted(process.execPath, "-e", counting)}`,
  );
  const [, pid] = await running.says(/runs below (\d+)/);
  running.type(typed);
  await running.says(/heard/);
  process.kill(Number(pid), "SIGTERM");
  expect(await running.ended).toEqual({ code: 1, shown: expect.not.stringContaining("heard 2") });
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
  const { out, err } = await site.main(...args, "--json");
  const parsed: unknown = JSON.parse(out);
  expect([Array.isArray(parsed) ? "array" : typeof parsed, err]).toEqual([shape, ""]);
  expect(out.trimEnd().split("\n")).toHaveLength(1);
  await hold.unlock().catch(() => undefined);
});

test.each([[["ls", "--json"]], [["ls", "--watch"]], [["--help"]]])(
  "output that cannot be written is no success: %j [B211]",
  async (args) => {
    const running = promisify(execFile)("sh", ["-c", `exec ${holdfast(...args)} > /dev/full`], {
      env: { ...process.env, HOLDFAST_URL: site.server.url },
    });
    await expect(running).rejects.toMatchObject({
      code: 70,
      stderr: expect.stringMatching(/^holdfast: cannot write the output: ENOSPC.*\n$/),
    });
  },
);

test("the page has every exit code", async () => {
  const page = await readFile(new URL("../../../docs/cli.md", import.meta.url), "utf8");
  const [, table = ""] = /## Exit codes\n([\s\S]*?)\n## /.exec(page) ?? [];
  const listed = [...table.matchAll(/^\| ([\d, ]+) +\|/gm)].flatMap(([, codes = ""]) => codes.split(","));
  expect(listed.map(Number).sort()).toEqual(Object.values(EXIT).map(Number).sort());
});
