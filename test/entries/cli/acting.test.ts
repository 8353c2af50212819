/** The commands that act: run and unlock. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { until } from "../../support/index.js";
import { own as ownProcess } from "../../support/owned-processes.js";
import { PROGRAM, type Running, useSite } from "./program.js";

const site = await useSite();
const client = site.client();
const folder = await mkdtemp(join(tmpdir(), "holdfast-cli-"));
afterAll(() => rm(folder, { recursive: true }));

/** `run` in this process, whose command writes to where the tests do. */
const runs = (line: string, ...command: string[]) => site.main("run", ...line.split(" "), "--", ...command);
const shell = (line: string, script: string) =>
  site.start("run", ...line.split(" "), "--", "sh", "-c", script);
const FOREVER = "while :; do sleep 0.1; done";

test("run gives its command the lock's name, its owner and the token, passes on what it writes, and ends with its code", async () => {
  const script = 'echo "$HOLDFAST_LOCK|$HOLDFAST_OWNER|$HOLDFAST_TOKEN"; echo and >&2; exit 3';
  const { code, out, err } = await shell("env --kind fenced --lease 1m", script).ended;
  expect([code, err]).toEqual([3, "and\n"]);
  expect(out).toMatch(/^env\|[-\w]+:\d+\|\d{16}\n$/);
  expect(await client.getLock("env").isLocked()).toBe(false);
  for (const code of [0, 77]) expect(await runs("env", "sh", "-c", `exit ${code}`)).toMatchObject({ code });
  expect((await runs("env", "sh", "-c", "kill -KILL $$")).code).toBe(137);
});

test("a command inside another's has the token of its own lock, or none [B162]", async () => {
  const inner = `exec '${process.execPath}' '${PROGRAM}' run inner -- sh -c 'echo "$HOLDFAST_LOCK|$HOLDFAST_TOKEN"'`;
  expect((await shell("outer --kind fenced", inner).ended).out).toBe("inner|\n");
});

test("run does nothing where others hold the lock: it ends with 75 at once or after --wait, or with --busy-code", async () => {
  const hold = await client.getLock("busy").lock();
  const marker = join(folder, "ran");
  // Long enough for an answer on a busy machine; a shorter wait could end without an answer.
  const asked = ["busy", "busy --wait 2500ms", "busy --busy-code 0"];
  const ended = await Promise.all(asked.map((line) => runs(line, "touch", marker)));
  expect(ended.map(({ code }) => code)).toEqual([75, 75, 0]);
  for (const { err } of ended) expect(err).toContain('lock "busy" is held by');
  await expect(readFile(marker)).rejects.toThrow("ENOENT");
  const waiting = runs("busy --wait 1m", "touch", marker);
  await until("it waits", async () => {
    const heard = await site.server.call("PUBSUB", "NUMSUB", "redisson_lock__channel:{busy}");
    return Number((heard as unknown[])[1]) > 0;
  });
  await hold.unlock();
  expect((await waiting).code).toBe(0);
  await readFile(marker);
});

test("readers run together, a writer alone", async () => {
  const reading = await client.getReadWriteLock("page").readLock().lock();
  expect((await runs("page --kind read", "true")).code).toBe(0);
  expect((await runs("page --kind write", "true")).code).toBe(75);
  await reading.unlock();
  expect((await runs("page --kind write", "true")).code).toBe(0);
});

test("a lock that is lost stops its command, which --kill-after gives so much time, also weeks: the code is 76 [B68]", async () => {
  const commands: [options: string, onTerm: string, out: string][] = [
    ["", "echo stopped; exit 0", "runs\nstopped\n"],
    ["--kill-after 30d", "sleep 0.3; echo stopped; exit 0", "runs\nstopped\n"],
    ["--kill-after 300ms", "", "runs\n"],
  ];
  const lost = commands.map(async ([options, onTerm, out], i) => {
    const line = `lost${i} --watchdog 4s ${options}`.trim();
    const running = shell(line, `trap '${onTerm}' TERM; echo runs; ${FOREVER}`);
    await running.says(/runs/);
    expect(await client.getLock(`lost${i}`).forceUnlock()).toBe(true);
    expect(await running.ended).toMatchObject({ code: 76, out });
    expect(running.err).toMatch(new RegExp(`lock "lost${i}" was lost \\(expired\\): stopping the command`));
  });
  await Promise.all(lost);
});

test.each<[string, string, (running: Running, name: string) => unknown, number]>([
  ["is lost", "--watchdog 4s", (_, name) => client.getLock(name).forceUnlock(), 76],
  ["is to end", "", (running) => running.kill("SIGTERM"), 143],
])("when a lock %s, the work of a pipeline ends before it is over [B281]", async (_, options, end, code) => {
  const marker = join(folder, `ended with ${code}`);
  const name = `pipeline ${code}`;
  const work = `trap 'sleep 0.5; touch "${marker}"; exit' TERM; echo runs; ${FOREVER}`;
  const args = ["run", name, ...options.split(" ").filter(Boolean), "--", "sh", "-c", `(${work}) | cat`];
  const running = site.start(...args);
  await running.says(/runs/);
  await end(running, name);
  await until("the lock is given back", async () => !(await client.getLock(name).isLocked()));
  if (code !== 76) await readFile(marker);
  expect(await running.ended).toMatchObject({ code });
  await readFile(marker);
});

test("signals go to the command, which keeps its lock until it ends [B206]", async () => {
  const passed = "INT HUP QUIT USR1 USR2 ALRM ABRT".split(" ");
  const traps = passed.map((name) => `trap 'echo heard ${name}' ${name}`).join("; ");
  const running = shell("signals", `${traps}; trap 'echo ends; exit 9' TERM; echo runs; ${FOREVER}`);
  await running.says(/runs/);
  for (const name of passed) {
    running.kill(`SIG${name}` as NodeJS.Signals);
    await running.says(new RegExp(`heard ${name}`));
    expect(await client.getLock("signals").isLocked()).toBe(true);
  }
  running.kill("SIGTERM");
  const out = `runs\n${passed.map((name) => `heard ${name}\n`).join("")}ends\n`;
  expect(await running.ended).toEqual({ code: 9, out, err: "" });
  expect(await client.getLock("signals").isLocked()).toBe(false);
});

test("a signal while it waits for the lock ends it, and leaves nothing behind", async () => {
  const hold = await client.getFairLock("waits").lock();
  const running = site.begin(
    "run",
    "waits",
    "--kind",
    "fair",
    "--wait",
    "1m",
    "--",
    "touch",
    join(folder, "late"),
  );
  const queue = "redisson_lock_queue:{waits}";
  await until("it waits", async () => Number(await site.server.call("LLEN", queue)) === 1);
  running.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130, out: "" });
  expect(await site.server.call("EXISTS", queue)).toBe(0);
  await hold.unlock();
  await expect(readFile(join(folder, "late"))).rejects.toThrow("ENOENT");
});

test("a command that takes no signal, as another user's, keeps the lock until it ends [B141]", async ({
  skip,
}) => {
  if (process.getuid?.() !== 0) skip("only root can start a command of another user");
  // Root without the right to signal others' processes, as a user is before what sudo has started.
  const command = ["setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", "echo runs; read line; exit 5"];
  const own = ["--bounding-set=-kill", process.execPath, PROGRAM, "run", "foreign", "--", ...command];
  const child = spawn("setpriv", own, { env: { ...process.env, HOLDFAST_URL: site.server.url } });
  ownProcess(child);
  const ended = new Promise((resolve) => child.once("close", resolve));
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      said += String(chunk);
    });
  await until("it runs", () => said.includes("runs"));
  for (const times of [1, 2]) {
    child.kill("SIGTERM");
    await until(`it is told ${times} times`, () => said.split("kill EPERM").length === times + 1);
  }
  const lock = client.getLock("foreign");
  expect(await lock.isLocked()).toBe(true);
  child.stdin.end("\n");
  expect(await ended).toBe(5);
  expect(await lock.isLocked()).toBe(false);
});

test("a command that is not there ends with 127, one that cannot run with 126, and the lock is free again [B147]", async () => {
  const { code, err } = await runs("none", "/no/such/command");
  expect([code, err]).toEqual([127, expect.stringContaining("command not found")]);
  expect((await runs("none", "/")).code).toBe(126);
  // What Node does not even try.
  expect((await runs("none", "/dev/null/command")).code).toBe(126);
  expect(await client.getLock("none").isLocked()).toBe(false);
});

// test/entries/inspector has each kind.
test("unlock --yes takes a lock away, tells for how long its holder may work on, and that one is told", async () => {
  const hold = await client.getLock("stuck").lock();
  const asked = await site.main("unlock", "stuck");
  expect([asked.code, asked.err]).toEqual([64, expect.stringContaining("--yes")]);
  expect(hold.isHeld).toBe(true);
  const done = await site.main("unlock", "stuck", "--yes");
  expect(done.code).toBe(0);
  expect(done.out).toMatch(/^stuck {3}.*\n {2}● .*\nUnlocked. Who had it may work on for \d+ m?s, .*\n$/);
  await until("it is told", () => hold.signal.aborted);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect(await site.main("unlock", "stuck", "--yes")).toMatchObject({ code: 1, out: "stuck is free.\n" });
});

test("unlock leaves numbers alone", async () => {
  const semaphore = client.getSemaphore("places");
  await semaphore.trySetPermits(2);
  const { code, err } = await site.main("unlock", "places", "--yes");
  expect([code, err]).toEqual([64, expect.stringContaining("not a lock")]);
  expect(await semaphore.availablePermits()).toBe(2);
});
