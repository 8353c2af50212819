/** The commands that act: run and unlock. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { failure } from "../../contract/helpers.js";
import { until } from "../../support/index.js";
import { own as ownProcess } from "../../support/owned-processes.js";
import { PROGRAM, useSite } from "./program.js";

const site = await useSite();

test.each([0, 3, 77])("run ends with the code of its command: %i", async (code) => {
  expect(await site.run("run", "code", "--", "sh", "-c", `exit ${code}`)).toMatchObject({ code });
});

test("run gives the command the lock's name, its owner and the token; what it writes passes through", async () => {
  const { out, code } = await site.run(
    ..."run env --kind fenced --lease 1m -- sh -c".split(" "),
    'echo "$HOLDFAST_LOCK|$HOLDFAST_OWNER|$HOLDFAST_TOKEN"; echo and >&2',
  );
  expect(code).toBe(0);
  expect(out).toMatch(/^env\|[-\w]+:\d+\|\d{16}\n$/);
  expect(await site.client().getLock("env").isLocked()).toBe(false);
});

test("a command inside another's has the token of its own lock, or none [B162]", async () => {
  const inner = [
    process.execPath,
    PROGRAM,
    "run",
    "inner",
    "--",
    "sh",
    "-c",
    'echo "$HOLDFAST_LOCK|$HOLDFAST_TOKEN"',
  ];
  const { out } = await site.run("run", "outer", "--kind", "fenced", "--", ...inner);
  expect(out).toBe("inner|\n");
});

test("a lock that is held: exit code 75 at once, or after --wait, or the code of --busy-code", async () => {
  const client = site.client({ label: "who has it" });
  const hold = await client.getLock("busy").lock();
  const marker = join(await mkdtemp(join(tmpdir(), "holdfast-cli-")), "ran");
  const asked: [args: string[], code: number][] = [
    [["busy"], 75],
    // Long enough for an answer on a busy machine; a shorter wait could end without an answer.
    [["busy", "--wait", "4500ms"], 75],
    [["busy", "--busy-code", "0"], 0],
  ];
  const ends = asked.map(async ([args, code]) => {
    const ended = await site.run("run", ...args, "--", "touch", marker);
    expect(ended.code).toBe(code);
    expect(ended.err).toContain('lock "busy" is held by');
  });
  await Promise.all(ends);
  await expect(readFile(marker)).rejects.toThrow("ENOENT");
  const waiting = site.start("run", "busy", "--wait", "1m", "--", "true");
  await until(
    "it waits",
    async () =>
      Number(
        ((await site.server.call("PUBSUB", "NUMSUB", "redisson_lock__channel:{busy}")) as unknown[])[1],
      ) > 0,
  );
  await hold.unlock();
  expect((await waiting.ended).code).toBe(0);
});

test("many processes count without losing an update", async () => {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-cli-"));
  const file = join(folder, "count");
  await writeFile(file, "0");
  const count = `n=$(cat '${file}'); sleep 0.05; echo $((n + 1)) > '${file}'`;
  const kinds = ["lock", "lock", "lock", "lock", "lock", "lock"];
  const ended = await Promise.all(
    kinds.map((kind) => site.run("run", "count", "--kind", kind, "--wait", "2m", "--", "sh", "-c", count)),
  );
  expect(ended.map(({ code }) => code)).toEqual(kinds.map(() => 0));
  expect((await readFile(file, "utf8")).trim()).toBe(String(kinds.length));
  await rm(folder, { recursive: true });
});

test("readers run together, a writer alone", async () => {
  const reading = await site.client().getReadWriteLock("page").readLock().lock();
  expect((await site.run("run", "page", "--kind", "read", "--", "true")).code).toBe(0);
  expect((await site.run("run", "page", "--kind", "write", "--", "true")).code).toBe(75);
  await reading.unlock();
  expect((await site.run("run", "page", "--kind", "write", "--", "true")).code).toBe(0);
});

test("a lock that is lost: the command is stopped, and the code is 76", async () => {
  const running = site.start(
    "run",
    "lost",
    "--watchdog",
    "7s",
    "--",
    "sh",
    "-c",
    "trap 'echo stopped; exit 0' TERM; echo runs; while :; do sleep 0.1; done",
  );
  await running.says(/runs/);
  expect(await site.client().getLock("lost").forceUnlock()).toBe(true);
  expect(await running.ended).toMatchObject({ code: 76, out: "runs\nstopped\n" });
  expect(running.err).toMatch(/lock "lost" was lost \(expired\): the command is stopped/);
});

test("a command that does not stop is killed after --kill-after", async () => {
  const stubborn = "trap '' TERM; echo runs; while :; do sleep 0.1; done";
  const running = site.start(
    "run",
    "stubborn",
    "--watchdog",
    "7s",
    "--kill-after",
    "300ms",
    "--",
    "sh",
    "-c",
    stubborn,
  );
  await running.says(/runs/);
  await site.client().getLock("stubborn").forceUnlock();
  expect((await running.ended).code).toBe(76);
});

test("a --kill-after of weeks gives the command its time [B68]", async () => {
  const slow = "trap 'sleep 0.3; echo stopped; exit 0' TERM; echo runs; while :; do sleep 0.1; done";
  const running = site.start(
    "run",
    "slow",
    "--watchdog",
    "7s",
    "--kill-after",
    "30d",
    "--",
    "sh",
    "-c",
    slow,
  );
  await running.says(/runs/);
  await site.client().getLock("slow").forceUnlock();
  expect(await running.ended).toMatchObject({ code: 76, out: "runs\nstopped\n" });
});

test("signals are passed on, and the lock is given back", async () => {
  const running = site.start(
    "run",
    "signals",
    "--",
    "sh",
    "-c",
    "trap 'echo heard; exit 9' TERM; echo runs; while :; do sleep 0.1; done",
  );
  await running.says(/runs/);
  running.child.kill("SIGTERM");
  expect(await running.ended).toMatchObject({ code: 9, out: "runs\nheard\n" });
  const killed = site.start("run", "signals", "--", "sh", "-c", "echo runs; kill -KILL $$");
  expect((await killed.ended).code).toBe(137);
  expect(await site.client().getLock("signals").isLocked()).toBe(false);
});

test.each(["SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGABRT"] as const)(
  "%s goes to the command, which keeps its lock [B206]",
  async (signal) => {
    const name = signal.slice("SIG".length);
    const running = site.start(
      "run",
      signal,
      "--",
      "sh",
      "-c",
      `trap 'echo heard' ${name}; trap 'exit 9' TERM; echo runs; while :; do sleep 0.1; done`,
    );
    await running.says(/runs/);
    running.child.kill(signal);
    await running.says(/heard/);
    expect((await site.run("run", signal, "--", "true")).code).toBe(75);
    running.child.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: 9, err: "" });
    expect(await site.client().getLock(signal).isLocked()).toBe(false);
  },
);

test("a signal while it waits for the lock ends it, and leaves nothing behind", async () => {
  const hold = await site.client().getFairLock("waits").lock();
  const running = site.start("run", "waits", "--kind", "fair", "--wait", "1m", "--", "echo", "ran");
  await until(
    "it waits",
    async () => Number(await site.server.call("LLEN", "redisson_lock_queue:{waits}")) === 1,
  );
  running.child.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130, out: "" });
  expect(await site.server.call("EXISTS", "redisson_lock_queue:{waits}")).toBe(0);
  await hold.unlock();
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
  const lock = site.client().getLock("foreign");
  expect(await lock.isLocked()).toBe(true);
  child.stdin.end("\n");
  expect(await ended).toBe(5);
  expect(await lock.isLocked()).toBe(false);
});

test("a command that is not there: 127, and the lock is free again [B147]", async () => {
  const { code, err } = await site.run("run", "none", "--", "/no/such/command");
  expect(code).toBe(127);
  expect(err).toContain("there is no such command");
  expect((await site.run("run", "none", "--", "/")).code).toBe(126);
  // What Node does not even try.
  expect((await site.run("run", "none", "--", "/dev/null/command")).code).toBe(126);
  expect(await site.client().getLock("none").isLocked()).toBe(false);
});

test.each(["lock", "fair", "fenced", "write", "read"])(
  "unlock takes a %s away, and its holder is told",
  async (kind) => {
    const client = site.client();
    const name = `stuck ${kind}`;
    const make = {
      lock: () => client.getLock(name),
      fair: () => client.getFairLock(name),
      fenced: () => client.getFencedLock(name),
      write: () => client.getReadWriteLock(name).writeLock(),
      read: () => client.getReadWriteLock(name).readLock(),
    }[kind];
    const hold = await make?.().lock();
    const asked = await site.main("unlock", name);
    expect([asked.code, asked.err]).toEqual([64, expect.stringContaining("--yes")]);
    expect(hold?.isHeld).toBe(true);
    const done = await site.main("unlock", name, "--yes");
    expect(done.code).toBe(0);
    expect(done.out).toMatch(new RegExp(`^${name} {3}.*\n {2}● .*\nUnlocked.\n$`));
    await until("it is told", () => hold?.signal.aborted);
    expect(await failure(hold?.unlock() as Promise<void>)).toMatchObject({ code: "LOCK_LOST" });
    expect(await site.main("unlock", name, "--yes")).toMatchObject({ code: 1, out: `${name} is free.\n` });
  },
);

test("unlock leaves numbers alone", async () => {
  await site.client().getSemaphore("places").trySetPermits(2);
  const { code, err } = await site.main("unlock", "places", "--yes");
  expect(code).toBe(64);
  expect(err).toContain("no lock");
  expect(await site.client().getSemaphore("places").availablePermits()).toBe(2);
});
