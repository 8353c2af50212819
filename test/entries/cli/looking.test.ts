/** The commands that look: ls, get, waiters, watch, deadlocks, inspector, completions; and wrong command lines. */
import { execFileSync } from "node:child_process";
import { hostname } from "node:os";
import { Writable } from "node:stream";
import { afterAll, expect, test } from "vitest";
import { circlesOf, type Edge } from "../../../src/entries/cli/deadlocks.js";
import { changesOf } from "../../../src/entries/cli/get.js";
import { Terminal } from "../../../src/entries/cli/terminal.js";
import type { Hold, LockInfo } from "../../../src/index.js";
import { untilWaiting } from "../../contract/helpers.js";
import { startRedis, until } from "../../support/index.js";
import { useSite } from "./program.js";

const site = await useSite();
const COMMANDS = "ls get watch waiters unlock run doctor deadlocks inspector completions".split(" ");

test("the help names every command, and each has a help of its own", async () => {
  const help = await site.main();
  expect(help).toMatchObject({ code: 0, err: "" });
  for (const name of COMMANDS) expect(help.out).toMatch(new RegExp(`^  ${name} `, "m"));
  expect(await site.run()).toEqual(help);
  expect(await site.main("--help")).toEqual(help);
  for (const name of COMMANDS) {
    const asked = await site.main(name, "--help");
    expect(asked).toEqual({ ...(await site.main("help", name)), code: 0 });
    expect(asked.out).toContain(`holdfast ${name}`);
  }
  expect((await site.run("--version")).out).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each<[string[], RegExp]>([
  [["lss"], /no command "lss"/],
  [["--url=redis://:secret@nowhere"], /the command is missing/],
  [["redis://user:secret@nowhere", "ls"], /a URL is no command/],
  [["ls", "a", "redis://user:secret@nowhere"], /a URL is too much/],
  [["ls", "--nope"], /--nope.*holdfast ls --help/],
  [["ls", "a", "b"], /"b" is too much/],
  [["get"], /something is missing/],
  [["get", ""], /name/],
  [["run", "a"], /the command is missing, after --/],
  [["run", "a", "--"], /the command is missing/],
  [["run", "a", "--wait", "soon", "--", "true"], /--wait must be a time.*"soon"/],
  [["run", "a", "--kind", "big", "--", "true"], /--kind must be lock, fair, fenced, read, write/],
  [["run", "a", "--busy-code", "256", "--", "true"], /--busy-code must be an integer from 0 to 255/],
  [["ls", "--", "true", "false"], /"false" is too much/],
  [["ls", "--watch", "--every", "1ms"], /--every must be 100ms at least/],
  [["ls", "--url", "http://user:secret@nowhere"], /redis:\/\/host:port/],
  [["ls", "--url"], /--url/],
  [["ls", "--url", "redis://:100%secret@nowhere"], /percent-encoded/],
  [["ls", "--url", "redis://:secret@nowhere?db=3"], /nothing behind \? or #/],
  [["ls", "--cluster", "--sentinel", "main"], /--cluster and --sentinel.*use one/],
  [["ls", "--cluster", "--url", "redis://:secret@nowhere/3"], /no database but 0.*names 3/],
  [["completions", "csh"], /bash, zsh, fish/],
])("typed wrong: %j [B91] [B145] [B161] [B163]", async (args, text) => {
  const { code, out, err } = await site.main(...args);
  expect({ code, out }).toEqual({ code: 64, out: "" });
  expect(err).toMatch(text);
  expect(err).not.toContain("secret");
  expect(err.trim().split("\n")).toHaveLength(1);
});

test("a process ends with the code and the message of a wrong command line", async () => {
  expect(await site.run("lss")).toEqual(await site.main("lss"));
});

test("--help without a command is the help, whatever stands before it [B146]", async () => {
  const help = await site.main("--help");
  expect(await site.main("--json", "--url", "redis://nowhere", "--help")).toEqual(help);
});

test("options of every command may stand before help, and behind it [B254]", async () => {
  const help = await site.main("--help");
  expect(await site.main("--json", "help")).toEqual(help);
  expect(await site.main("help", "--url=redis://nowhere", "--json")).toEqual(help);
  const ofLs = await site.main("ls", "--help");
  expect(await site.main("--json", "help", "ls")).toEqual(ofLs);
  expect(await site.main("--url", "redis://nowhere", "help", "--json", "ls")).toEqual(ofLs);
  expect(await site.main("help", "--nope")).toMatchObject({ code: 64, out: "" });
});

test("options of every command may stand before it", async () => {
  const client = site.client({ prefix: "front" });
  const hold = await client.getLock("here").lock();
  const asked = await site.main("--json", "--prefix", "front", `--url=${site.server.url}`, "ls");
  expect(asked).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(asked.out)).toMatchObject([{ name: "here" }]);
  expect((await site.main("--prefix", "front")).code).toBe(64);
  await hold.unlock();
});

test("behind -- a name may begin with a dash [B56]", async () => {
  const hold = await site.client().getLock("-h").lock();
  expect((await site.main("get", "--json", "--", "-h")).out).toContain('"name":"-h"');
  expect((await site.main("ls", "--json", "--", "-*")).out).toContain('"name":"-h"');
  expect((await site.main("unlock", "--yes", "--", "-h")).code).toBe(0);
  await hold.unlock().catch(() => undefined);
});

test("Redis that is away: code 69, its address, and no password", async () => {
  const gone = await startRedis();
  const url = `redis://user:secret@127.0.0.1:${gone.port}`;
  await gone.stop();
  const { code, err } = await site.main("ls", "--url", url);
  expect(code).toBe(69);
  expect(err).toContain(`redis://127.0.0.1:${gone.port}`);
  expect(err).not.toContain("secret");
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
    /^shown {3}fair, lapses in .*\n {2}● orders-1 .*\n {2}○ stock-2 .*, holds shown too\n$/,
  );
  expect(one.out).toContain(hold.ownerId);
  const json = JSON.parse((await site.main("get", "shown", "--json")).out) as LockInfo;
  expect(json).toMatchObject({
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

test("--prefix is that of LockClient; a Java holder is an id; what a name says moves no cursor", async () => {
  const hold = await site.client({ prefix: "shop" }).getLock("a\u001b[2Jb\u202e").lock();
  expect((await site.main("ls", "--prefix", "shop")).out).toContain("a\\u001b[2Jb\\u202e");
  expect((await site.main("ls", "a*")).out).toBe("Nothing is held.\n");
  await hold.unlock();
  const java = "b8a9c8e5-3c0c-4f5e-9f3a-1c2d3e4f5a6b:7";
  await site.server.call("HSET", "javas", java, "1");
  await site.server.call("PEXPIRE", "javas", "60000");
  expect((await site.main("ls", "javas")).out).toMatch(new RegExp(`javas +lock +${java} .*\\d+ s`));
  expect((await site.main("get", "javas")).out).toContain(`an unknown process, lapses in`);
  const busy = await site.main("run", "javas", "--", "true");
  expect(busy).toMatchObject({
    code: 75,
    err: expect.stringContaining("is held by an unknown process, lapses"),
  });
  await site.server.call("DEL", "javas");
});

test("watch tells grants, waits, releases and lapses as they happen", async () => {
  const [mine, theirs] = [site.client(), site.client()];
  const watching = site.start("watch", "watched", "--every", "100ms");
  await watching.says(/free/);
  const hold = await mine.getFairLock("watched").lock();
  await watching.says(new RegExp(`granted +.*${hold.ownerId}`));
  const waiter = await untilWaiting(theirs, () => theirs.getFairLock("watched").lock({ lease: 1_000 }));
  await watching.says(/waits/);
  await hold.unlock();
  await watching.says(new RegExp(`released +.*${hold.ownerId}`));
  const next = await waiter.done;
  await watching.says(new RegExp(`granted +.*${next.ownerId}[^]*(lapsed|released)[^]*free`));
  watching.child.kill("SIGINT");
  expect((await watching.ended).code).toBe(130);
});

test("watch tells that a lease ran out [B250]", async () => {
  const watching = site.start("watch", "ran out", "--every", "100ms", "--json");
  await watching.says(/free/);
  const ends = () => [...watching.out.matchAll(/"what":"(lapsed|released)"/g)].map(([, what]) => what);
  let next = 1;
  await until("leases have run out", async () => {
    if (ends().length >= 3) return true;
    if (Number(await site.server.call("EXISTS", "ran out")) === 0) {
      await site.server.call("HSET", "ran out", `b8a9c8e5-3c0c-4f5e-9f3a-1c2d3e4f5a6b:${next++}`, "1");
      await site.server.call("PEXPIRE", "ran out", "1000");
    }
    return false;
  });
  expect(ends()).not.toContain("released");
  watching.child.kill("SIGINT");
  await watching.ended;
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
])("a hold that is gone counts as %s: %j", (what, { ttl, longest = ttl, elapsed }) => {
  const holders = [{ ownerId: "c:1", count: 1, ttl, client: null, since: null }];
  const info: LockInfo = { name: "a", kind: "lock", holders, waiters: [], waiting: [], ttl };
  const before = { begun: 1_000, ended: 1_010, info, longest: new Map([["c:1", longest]]) };
  const now = { begun: 990 + elapsed, ended: 1_000 + elapsed, info: null, longest: new Map() };
  expect(changesOf(before, now)).toEqual([
    { what, who: "c:1" },
    { what: "free", who: "" },
  ]);
});

test("watch --every may be weeks: it looks once, and Node has nothing to warn of", async () => {
  const running = site.start("watch", "weeks", "--every", "30d");
  await running.says(/free/);
  running.child.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130, err: "" });
});

test("who reads what it writes may leave: it ends without a word, as by SIGPIPE [B69]", async () => {
  const running = site.start("ls", "--watch", "--every", "100ms");
  await running.says(/Nothing|NAME/);
  running.child.stdout?.destroy();
  expect(await running.ended).toMatchObject({ code: 141, err: "" });
});

test("ls --watch goes on until it is ended", async () => {
  const watching = site.start("ls", "again*", "--watch", "--every", "100ms", "--json");
  const hold = await site.client().getLock("again").lock();
  await watching.says(/"again".*\n.*"again".*\n.*"again"/);
  watching.child.kill("SIGTERM");
  expect((await watching.ended).code).toBe(143);
  await hold.unlock();
});

test.each([
  ["watch", "away"],
  ["ls", "--watch"],
  ["waiters", "--watch"],
])("%s %s goes on when Redis answers again; without a first answer it ends [B166]", async (...command) => {
  await using server = await startRedis();
  const watching = site.start(...command, "--every", "100ms", "--url", server.url);
  await watching.says(/free|Nothing|Nobody/);
  await server.kill();
  await watching.says(/holdfast: .*no usable answer from Redis/);
  expect(await site.main(...command, "--url", server.url)).toMatchObject({ code: 69, out: "" });
  await server.restart();
  await watching.says(/holdfast: Redis answers again/);
  watching.child.kill("SIGINT");
  expect((await watching.ended).code).toBe(130);
});

test("deadlocks: two owners that wait for each other, in two processes", async () => {
  expect(await site.main("deadlocks")).toMatchObject({ code: 0, out: "There is none.\n" });
  const [a, b] = [site.client({ label: "A", traceHolds: true }), site.client({ label: "B" })];
  const taken = [a.getLock("dead 1"), b.getLock("dead 2")].map(function takeIt(lock) {
    return lock.lock();
  });
  const [one, two] = (await Promise.all(taken)) as [Hold, Hold];
  const ending = new AbortController();
  const { signal } = ending;
  const calls = [
    a.getLock("dead 2").lock({ owner: one, signal }),
    b.getLock("dead 1").lock({ owner: two, signal }),
  ].map((call) => call.catch(() => undefined));
  await until("it is seen", async () => (await site.main("deadlocks")).code === 1);
  const { out } = await site.main("deadlocks");
  expect(out).toMatch(/^dead ([12]) → dead [12] → dead \1\n/);
  expect(out).toMatch(/waits for dead 2: A \(/);
  expect(out).toMatch(/waits for dead 1: B \(/);
  const place = /takeIt \(.*looking\.test\.ts:\d+:\d+\)/;
  expect(out.match(/took .* at .*/g)).toEqual([expect.stringMatching(/^took dead 1 at takeIt /)]);
  expect(out).toMatch(place);
  const [circle = []] = JSON.parse((await site.main("deadlocks", "--json")).out) as Edge[][];
  const places = circle.map(({ held, callSites }) => [held, callSites]).sort();
  expect(places).toEqual([
    ["dead 1", [expect.stringMatching(place)]],
    ["dead 2", []],
  ]);
  expect((await site.main("get", "dead 1")).out).toMatch(/ {2}● A .*\n {6}taken at takeIt \(.*\n {2}○ B /);
  expect((await site.main("get", "dead 2")).out).not.toContain("taken at");
  ending.abort();
  await Promise.all(calls);
  await Promise.all([one.unlock(), two.unlock()]);
});

test("deadlocks: a fork that waits for what the run around it holds, and no runs that take turns [B249]", async () => {
  const client = site.client({ label: "A" });
  const [a, b] = [client.getLock("turns a"), client.getLock("turns b")];
  const ending = new AbortController();
  const { signal } = ending;
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const work = () => ended;
  const turns = a.run(() => b.run(() => Promise.all([a.run(work), a.run(work), b.run(work), b.run(work)])));
  const waiters = async () => JSON.parse((await site.main("waiters", "--json")).out) as unknown[];
  await until("both wait for their turns", async () => (await waiters()).length === 2);
  expect(await site.main("deadlocks")).toMatchObject({ code: 0, out: "There is none.\n" });
  const forks = ["fork", "read fork"].map((name) => {
    const lock = name === "fork" ? client.getLock(name) : client.getReadWriteLock(name).readLock();
    const wanted = name === "fork" ? lock : client.getReadWriteLock(name).writeLock();
    return lock.run(() => client.scope(() => wanted.run(() => {}, { signal }))).catch(() => undefined);
  });
  // What clients tell is some seconds old.
  await until("it is seen", async () => {
    const circles = JSON.parse((await site.main("deadlocks", "--json")).out) as Edge[][];
    return circles.length === 2;
  });
  const { out, code } = await site.main("deadlocks");
  expect(code).toBe(1);
  for (const name of ["fork", "read fork"])
    expect(out).toMatch(new RegExp(`^${name} → ${name}\n {2}waits for ${name}: A .*, holds ${name}$`, "m"));
  ending.abort();
  end();
  await Promise.all([turns, ...forks]);
});

const CLIENT = { id: "c", label: "A", host: "web-3", pid: 812 };

/** A lock by its holders, of one client; `+`: the client has told of that hold. */
function heldBy(name: string, holders: readonly string[], waiting: LockInfo["waiting"]): LockInfo {
  const info = holders.map((told) => {
    const since = told.endsWith("+") ? new Date(0) : null;
    return { ownerId: told.replace("+", ""), count: 1, ttl: 1, client: CLIENT, since };
  });
  return { name, kind: "lock", holders: info, waiters: [], waiting, ttl: 1 };
}

const waiterOf = (ownerId: string, ...holds: string[]) => ({ ownerId, client: CLIENT, since: null, holds });

test.each<[string, LockInfo[], string[]]>([
  [
    "an owner that takes turns with itself waits for no other",
    [heldBy("a", ["c:1+"], [waiterOf("c:1", "a", "b")]), heldBy("b", ["c:2+"], [waiterOf("c:2", "b", "a")])],
    [],
  ],
  ["a fork waits for its own run", [heldBy("a", ["c:1+"], [waiterOf("c:9", "a")])], ["a>a"]],
  [
    "a fork of a fork, behind a chain",
    [heldBy("x", ["d:1"], []), heldBy("a", ["c:1+"], [waiterOf("c:9", "x", "a")])],
    ["a>a"],
  ],
  ["of several readers one may be its own", [heldBy("a", ["c:1+", "c:2+"], [waiterOf("c:9", "a")])], []],
  ["a hold that is over, and the next one of that owner", [heldBy("a", ["c:2"], [waiterOf("c:1", "a")])], []],
  [
    "holds that are over, of an owner that takes turns",
    [heldBy("a", ["c:3"], [waiterOf("c:1", "a", "b")]), heldBy("b", ["c:4"], [waiterOf("c:2", "b", "a")])],
    [],
  ],
  [
    "a fork and another reader, who waits for what the fork's run holds",
    [
      heldBy("a", ["c:1+", "d:1+"], [waiterOf("c:9", "a", "b")]),
      heldBy("b", ["c:2+"], [waiterOf("d:2", "a")]),
    ],
    ["b>a a>b"],
  ],
])("the circles of owners: %s", (_, locks, circles) => {
  const found = circlesOf(locks).map((circle) => circle.map(({ held, wanted }) => `${held}>${wanted}`));
  const sorted = (texts: readonly string[]) => texts.map((text) => text.split(" ").sort()).sort();
  expect(sorted(found.map((edges) => edges.join(" ")))).toEqual(sorted(circles));
});

/** Locks whose waiters hold others, from edges `held>wanted`. */
function graph(...edges: string[]): LockInfo[] {
  const names = new Set(edges.flatMap((edge) => edge.split(">")));
  return [...names].map((name) => {
    const waiting = edges
      .filter((edge) => edge.split(">")[1] === name)
      .map((edge) => ({ client: null, since: null, holds: [edge.split(">")[0] as string] }));
    return { name, kind: "lock", holders: [], waiters: [], waiting, ttl: 1 };
  });
}

test.each<[string, string[], string[]]>([
  ["none", ["a>b", "b>c", "a>c", "d>c"], []],
  ["its own", ["a>a"], []],
  ["two", ["a>b", "b>a"], ["ab"]],
  ["behind a chain", ["x>a", "a>b", "b>c", "c>a", "c>d"], ["abc"]],
  ["two circles", ["a>b", "b>a", "b>c", "c>d", "d>c"], ["ab", "cd"]],
])("the circles of a graph: %s", (_, edges, circles) => {
  const found = circlesOf(graph(...edges)).map((circle) =>
    circle
      .map(({ held }) => held)
      .sort()
      .join(""),
  );
  expect(found.sort()).toEqual(circles);
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

test("a long chain of locks is no problem", () => {
  const chain = Array.from({ length: 20_000 }, (_, i) => `${i}>${i + 1}`);
  const locks = new Map<string, LockInfo>();
  for (const edge of chain) {
    const [held = "", wanted = ""] = edge.split(">");
    const waiting = [{ client: null, since: null, holds: [held] }];
    locks.set(wanted, { name: wanted, kind: "lock", holders: [], waiters: [], waiting, ttl: 1 });
  }
  expect(circlesOf([...locks.values()])).toEqual([]);
});

test("inspector serves the page on this machine, and unlocks only if asked to", async () => {
  const hold = await site.client().getLock("on the page").lock();
  const running = site.start("inspector", "--port", "0", "--json");
  await running.says(/"url"/);
  const { url } = JSON.parse(running.out) as { url: string };
  const { locks } = (await (await fetch(`${url}api/locks`)).json()) as { locks: LockInfo[] };
  expect(locks.map(({ name }) => name)).toContain("on the page");
  const page = await (await fetch(url)).text();
  expect(page).toContain("holdfast-csrf");
  const refused = await fetch(`${url}api/unlock`, { method: "POST", body: "{}" });
  expect(refused.status).toBe(403);
  running.child.kill("SIGTERM");
  expect((await running.ended).code).toBe(143);
  await hold.unlock();
});

test.each([[[]], [["--unlock"]]])("inspector %j refuses whoever comes by a proxy [B246]", async (options) => {
  const running = site.start("inspector", "--port", "0", "--json", ...options);
  await running.says(/"url"/);
  const { url } = JSON.parse(running.out) as { url: string };
  const { origin } = new URL(url);
  const page = await (await fetch(url)).text();
  const token = /<meta name="holdfast-csrf" content="([^"]+)">/.exec(page)?.[1] ?? "";
  const hold = await site.client().getLock("behind a proxy").lock();
  const unlocking = (headers: Record<string, string>) =>
    fetch(`${url}api/unlock`, {
      method: "POST",
      headers: { origin, "content-type": "application/json", "x-holdfast-csrf": token, ...headers },
      body: JSON.stringify({ name: "behind a proxy" }),
    });
  for (const headers of [
    { "x-forwarded-for": "203.0.113.9" },
    { forwarded: "for=203.0.113.9" },
    { via: "1.1 proxy" },
  ]) {
    const answers = [await fetch(`${url}api/locks`, { headers }), await unlocking(headers)];
    expect([headers, ...answers.map(({ status }) => status)]).toEqual([headers, 403, 403]);
  }
  expect(await site.client().getLock("behind a proxy").isLocked()).toBe(true);
  expect((await unlocking({})).status).toBe(options.length > 0 ? 200 : 403);
  await hold.unlock().catch(() => undefined);
});

test.each(["toString", "constructor", "tcsh"])(
  "there are no completions for the shell %s [B210]",
  async (shell) => {
    const { code, out, err } = await site.main("completions", shell);
    expect([code, out, err]).toEqual([64, "", "holdfast: there are completions for bash, zsh, fish\n"]);
  },
);

test("completions complete commands and options in bash", async () => {
  const { out } = await site.main("completions", "bash");
  const complete = (line: string) => {
    const words = line.split(" ");
    const script = `${out}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})\nCOMP_CWORD=${words.length - 1}
      _holdfast holdfast '${words.at(-1)}' '${words.at(-2)}'\necho "\${COMPREPLY[@]}"`;
    return execFileSync("bash", ["-c", script], { encoding: "utf8" }).trim().split(" ");
  };
  expect(complete("holdfast ")).toEqual([...COMMANDS, "help"]);
  expect(complete("holdfast wa")).toEqual(["watch", "waiters"]);
  expect(complete("holdfast run --bu")).toEqual(["--busy-code"]);
  for (const shell of ["zsh", "fish"])
    expect((await site.main("completions", shell)).out).toContain("busy-code");
});

afterAll(async () => {
  expect(await site.run("ls")).toMatchObject({ code: 0 });
});
