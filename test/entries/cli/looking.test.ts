/** Command lines and help, and the commands that look: ls, get, waiters, watch, inspector. */
import { hostname } from "node:os";
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { changesOf } from "../../../src/entries/cli/get.js";
import { Terminal } from "../../../src/entries/cli/terminal.js";
import type { Hold, LockInfo } from "../../../src/index.js";
import { untilWaiting } from "../../contract/helpers.js";
import { forTest, startRedis, until } from "../../support/index.js";
import { useSite } from "./program.js";

const site = await useSite();
const COMMANDS = "ls get watch waiters unlock run doctor deadlocks inspector".split(" ");

test("the help names every command, and each command has a help of its own", async () => {
  const help = await site.main();
  expect(help).toMatchObject({ code: 0, err: "" });
  for (const name of COMMANDS) {
    expect(help.out).toMatch(new RegExp(`^  ${name} `, "m"));
    const own = await site.main(name, "--help");
    expect(own).toMatchObject({ code: 0, err: "", out: expect.stringContaining(`holdfast ${name}`) });
    expect(await site.main("help", name)).toEqual(own);
  }
});

test.each([
  ["--help"],
  ["--json --url redis://nowhere --help"],
  ["--json help"],
  ["help --url=redis://nowhere --json"],
  ["ls --help", "--json help ls"],
  ["ls --help", "--url redis://nowhere help --json ls"],
])("options of every command may stand before help and behind it: %s %s [B146] [B254]", async (...lines) => {
  const [one, other = ""] = lines;
  expect(await site.main(...one.split(" "))).toEqual(await site.main(...other.split(" ").filter(Boolean)));
});

test("a process ends with the answer and the code of its main function", async () => {
  expect(await site.run()).toEqual(await site.main());
  expect(await site.run("lss")).toEqual(await site.main("lss"));
  expect((await site.run("--version")).out).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each<[string[], RegExp]>([
  [["lss"], /no command "lss"/],
  [["--url=redis://:secret@nowhere"], /a command is missing/],
  [["--prefix", "front"], /a command is missing/],
  [["redis://user:secret@nowhere", "ls"], /a URL is no command/],
  [["ls", "a", "redis://user:secret@nowhere"], /a URL is unexpected/],
  [["ls", "--nope"], /--nope.*holdfast ls --help/],
  [["help", "--nope"], /a command is missing/],
  [["ls", "a", "b"], /"b" is unexpected/],
  [["get"], /an argument is missing/],
  [["get", ""], /name/],
  [["run", "a", "echo", "hi"], /did you forget --\?/],
  [["run", "a", "--lease", "10000", "--", "true"], /--lease must be a time such as 500ms, 10s.*"10000"/],
  [["run", "a"], /a command is missing after --/],
  [["run", "a", "--"], /a command is missing/],
  [["run", "a", "--wait", "soon", "--", "true"], /--wait must be a time.*"soon"/],
  [["run", "a", "--kind", "big", "--", "true"], /--kind must be lock, fair, fenced, read, write/],
  [["run", "a", "--busy-code", "256", "--", "true"], /--busy-code must be an integer from 0 to 255/],
  [["ls", "--", "true", "false"], /"false" is unexpected/],
  [["ls", "--watch", "--every", "1ms"], /--every must be at least 100ms/],
  [["ls", "--url", "http://user:secret@nowhere"], /redis:\/\/host:port/],
  [["ls", "--url"], /--url/],
  [["ls", "--url", "redis://:100%secret@nowhere"], /percent-encoded/],
  [["ls", "--url", "redis://:secret@nowhere?db=3"], /no \? or # here/],
  [["ls", "--cluster", "--sentinel", "main"], /--cluster and --sentinel.*use one/],
  [["ls", "--cluster", "--url", "redis://:secret@nowhere/3"], /only database 0.*names 3/],
])(
  "the wrong command line %j is told in one line without secrets [B282] [B91] [B145] [B161] [B163] [B254]",
  async (args, text) => {
    const { code, out, err } = await site.main(...args);
    expect({ code, out }).toEqual({ code: 64, out: "" });
    const [line, ...others] = err.trim().split("\n");
    expect([line, others]).toEqual([expect.stringMatching(text), []]);
    expect(err).not.toContain("secret");
  },
);

test("options of every command may stand before it, and names behind -- begin with a dash [B56]", async () => {
  const hold = await site.client({ prefix: "front" }).getLock("-h").lock();
  const before = ["--json", "--prefix", "front", `--url=${site.server.url}`];
  const asked = await site.main(...before, "ls");
  expect(asked).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(asked.out)).toMatchObject([{ name: "-h" }]);
  expect((await site.main(...before, "ls", "--", "-*")).out).toContain('"name":"-h"');
  expect((await site.main(...before, "get", "--", "-h")).out).toContain('"name":"-h"');
  expect((await site.main(...before, "unlock", "--yes", "--", "-h")).code).toBe(0);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

test("ls, get and waiters show who holds what, and who waits", async () => {
  const [mine, theirs] = [site.client({ label: "orders-1" }), site.client({ label: "stock-2" })];
  const lock = mine.getFairLock("shown");
  const hold = await lock.lock();
  const held = await theirs.getLock("shown too").lock();
  const waiter = await untilWaiting(theirs, () => theirs.getFairLock("shown").lock({ owner: held }));
  await mine.getSemaphore("shown places").trySetPermits(3);
  await until("both are told", async () => {
    const { out } = await site.main("ls", "shown*", "--json");
    const [first] = JSON.parse(out) as LockInfo[];
    return first?.holders[0]?.since && first.waiting[0]?.client;
  });
  const { out, code } = await site.main("ls", "shown*");
  expect(code).toBe(0);
  const rows = out.trimEnd().split("\n");
  expect(rows).toHaveLength(4);
  expect(rows[0]).toMatch(/^NAME +KIND +HOLDER +HOST +PID +SINCE +TTL +WAITING$/);
  const place = `${hostname()} +${process.pid}`;
  expect(rows[1]).toMatch(new RegExp(`^shown +fair +orders-1 +${place} +\\d+ s +\\d+ m?s +1$`));
  expect(rows[2]).toMatch(/^shown places +semaphore +3 free/);
  expect(rows[3]).toMatch(new RegExp(`^shown too +lock +stock-2 +${place}`));

  const one = await site.main("get", "shown");
  expect(one.code).toBe(0);
  expect(one.out).toMatch(
    /^shown {3}fair, lapses in .*\n {2}● orders-1 .*\n {2}○ stock-2 .*, for \d+ s, holds shown too\n$/,
  );
  expect(one.out).toContain(hold.ownerId);
  expect(JSON.parse((await site.main("get", "shown", "--json")).out)).toMatchObject({
    name: "shown",
    holders: [{ ownerId: hold.ownerId }],
    waiters: [expect.any(String)],
  });

  const waiting = await site.main("waiters");
  expect(waiting.out).toMatch(new RegExp(`shown +fair +stock-2 +${place} +\\d+ s +shown too\n`));
  expect((await site.main("waiters", "no such*")).out).toBe("Nobody waits.\n");

  await hold.unlock();
  await (await waiter.done).unlock();
  await held.unlock();
  expect(await site.main("get", "shown")).toMatchObject({ code: 1, out: "shown is free.\n" });
  expect((await site.main("ls", "shown t*")).out).toBe("Nothing is held.\n");
});

test("--prefix is that of LockClient, a Java holder is an id, and no name moves the cursor", async () => {
  const hold = await site.client({ prefix: "shop" }).getLock("a\u001b[2Jb\u202e").lock();
  expect((await site.main("ls", "--prefix", "shop")).out).toContain("a\\u001b[2Jb\\u202e");
  expect((await site.main("ls", "a*")).out).toBe("Nothing is held.\n");
  await hold.unlock();
  const java = "b8a9c8e5-3c0c-4f5e-9f3a-1c2d3e4f5a6b:7";
  await site.server.call("HSET", "javas", java, "1");
  await site.server.call("PEXPIRE", "javas", "60000");
  expect((await site.main("ls", "javas")).out).toMatch(new RegExp(`javas +lock +${java} .*\\d+ s`));
  expect((await site.main("get", "javas")).out).toContain("an unknown process, lapses in");
  expect(await site.main("run", "javas", "--", "true")).toMatchObject({
    code: 75,
    err: expect.stringContaining("is held by an unknown process, lapses"),
  });
  await site.server.call("DEL", "javas");
});

test("watch tells grants, waits, releases and lapses in lines for people, or as documents [B250]", async () => {
  // What they hold ends neither by a stall of the test nor before it is seen.
  const [mine, theirs] = [site.client({ watchdogTimeout: 60_000 }), site.client()];
  const watching = ["--every=200ms", "--json"].map((option) => site.begin("watch", "watched", option));
  const say = (text: RegExp) => Promise.all(watching.map((each) => each.says(text)));
  await say(/free/);
  const hold = await mine.getFairLock("watched").lock();
  await say(/granted/);
  const waiter = await untilWaiting(theirs, () => theirs.getFairLock("watched").lock({ lease: 2_000 }));
  await say(/waits/);
  await hold.unlock();
  const next = await waiter.done;
  await say(/granted[\s\S]*granted[\s\S]*lapsed[\s\S]*free/);
  const [people, json] = watching.map(({ out }) => out.trimEnd().split("\n")) as [string[], string[]];
  const documents = json.map((line) => JSON.parse(line) as { at: string; what: string; who: string });
  for (const { at } of documents) expect(Date.parse(at)).toBeGreaterThan(0);
  const lines = people.map((line) => {
    const [, what = "", who = ""] = /^[-\d]+T[:.\d]+Z {2}(\w+) *(.*)$/.exec(line) ?? [];
    return { what, who };
  });
  for (const told of [documents, lines]) {
    const of = ({ ownerId }: Hold) =>
      told.flatMap(({ what, who }) => (who.includes(ownerId) && /ed$/.test(what) ? what : []));
    expect([of(hold), of(next)]).toEqual([
      ["granted", "released"],
      ["granted", "lapsed"],
    ]);
    expect([told[0], told.at(-1)]).toMatchObject([{ what: "free" }, { what: "free" }]);
  }
  for (const each of watching) each.kill("SIGINT");
  for (const each of watching) expect(await each.ended).toMatchObject({ code: 130, err: "" });
});

test.each<[string, { ttl: number; longest?: number; elapsed: number }]>([
  ["lapsed", { ttl: 150, elapsed: 200 }],
  ["lapsed", { ttl: 200, elapsed: 200 }],
  // The holder's own deadline is the earlier, the longer its lease is.
  ["lapsed", { ttl: 700, longest: 60_000, elapsed: 200 }],
  ["released", { ttl: 900, longest: 60_000, elapsed: 200 }],
  ["released", { ttl: 700, elapsed: 200 }],
  ["released", { ttl: 20_100, longest: 30_000, elapsed: 200 }],
  ["released", { ttl: -1, elapsed: 200 }],
])("a hold that is gone counts as %s: %j [B250]", (what, { ttl, longest = ttl, elapsed }) => {
  const holders = [{ ownerId: "c:1", count: 1, ttl, client: null, since: null }];
  const info: LockInfo = { name: "a", kind: "lock", holders, waiters: [], waiting: [], ttl };
  const before = { begun: 1_000, ended: 1_010, info, longest: new Map([["c:1", longest]]) };
  const now = { begun: 990 + elapsed, ended: 1_000 + elapsed, info: null, longest: new Map() };
  expect(changesOf(before, now)).toEqual([
    { what, who: "c:1" },
    { what: "free", who: "" },
  ]);
});

test("watch --every may be weeks: it looks once, and Node has nothing to warn of [B68]", async () => {
  const running = site.start("watch", "weeks", "--every", "30d");
  await running.says(/free/);
  running.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130, err: "" });
});

test("who reads what it writes may leave: it ends without a word, as by SIGPIPE [B69]", async () => {
  const running = site.start("ls", "--watch", "--every", "100ms");
  await running.says(/Nothing|NAME/);
  running.leave();
  expect(await running.ended).toMatchObject({ code: 141, err: "" });
});

test("what looks again and again goes on when Redis answers again; without a first answer it ends with 69 and one line [B166] [B282]", async () => {
  await using server = await startRedis();
  const commands = ["watch away", "ls --watch", "waiters --watch"].map((line) => line.split(" "));
  const looking = commands.map((words) => site.begin(...words, "--every", "100ms", "--url", server.url));
  for (const each of looking) await each.says(/free|Nothing|Nobody/);
  await server.kill();
  const url = `redis://user:secret@127.0.0.1:${server.port}`;
  const asked = await Promise.all(commands.map((words) => site.main(...words, "--url", url)));
  for (const { err, ...ended } of asked) {
    expect(ended).toEqual({ code: 69, out: "" });
    const refused = `connect ECONNREFUSED 127.0.0.1:${server.port}`;
    expect(err).toBe(
      `holdfast: no usable answer from Redis at redis://127.0.0.1:${server.port}: ${refused}\n`,
    );
  }
  for (const each of looking) await each.says(/holdfast: .*no usable answer from Redis/);
  await server.restart();
  for (const each of looking) await each.says(/holdfast: Redis answers again/);
  for (const each of looking) each.kill("SIGTERM");
  for (const each of looking) expect((await each.ended).code).toBe(143);
});

test("a table may have more rows than a function takes arguments [B144]", () => {
  let shown = 0;
  const stdout = new Writable({
    write(_chunk, _encoding, done) {
      shown++;
      done();
    },
  });
  const rows = Array.from({ length: 300_000 }, (_, i) => [`lock ${i}`, "lock"]);
  new Terminal({ stdin: process.stdin, stdout, stderr: stdout }, false, {}).table(["NAME", "KIND"], rows);
  expect(shown + stdout.writableLength).toBeGreaterThan(rows.length);
});

test.each([[[]], [["--unlock"]]])(
  "inspector %j serves the page on this machine, refuses whoever comes by a proxy, and unlocks only if asked to [B246]",
  async (options) => {
    const running = site.begin("inspector", "--port", "0", "--json", ...options);
    await running.says(/"url"/);
    const { url } = JSON.parse(running.out) as { url: string };
    const { origin } = new URL(url);
    const page = await (await fetch(url)).text();
    const token = /<meta name="holdfast-csrf" content="([^"]+)">/.exec(page)?.[1] ?? "";
    const client = forTest(site.client());
    const hold = await client.getLock("on the page").lock();
    const { locks } = (await (await fetch(`${url}api/locks`)).json()) as { locks: LockInfo[] };
    expect(locks.map(({ name }) => name)).toContain("on the page");
    const unlocking = (headers: Record<string, string>) =>
      fetch(`${url}api/unlock`, {
        method: "POST",
        headers: { origin, "content-type": "application/json", "x-holdfast-csrf": token, ...headers },
        body: JSON.stringify({ name: "on the page" }),
      });
    const headers = { via: "1.1 proxy" };
    const passedOn = [await fetch(`${url}api/locks`, { headers }), await unlocking(headers)];
    expect(passedOn.map(({ status }) => status)).toEqual([403, 403]);
    expect(hold.isHeld).toBe(true);
    expect((await unlocking({})).status).toBe(options.length > 0 ? 200 : 403);
    expect(await client.getLock("on the page").isLocked()).toBe(options.length === 0);
    running.kill("SIGTERM");
    expect((await running.ended).code).toBe(143);
    await expect(fetch(url)).rejects.toThrow("fetch failed");
  },
);
