/** The option `traceHolds`: what `inspect` reports of the place where a hold was taken. */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { locked } from "../../../src/entries/decorator.js";
import { type Hold, LockClient, type LockClientOptions, MultiLock, RedLock } from "../../../src/index.js";
import { byName, WITH_GROUP } from "../../contract/kinds.js";
import { bundledWorker } from "../../faults/build-worker.js";
import { forFile, startRedis, startWorker, until } from "../../support/index.js";

const QUICK = 4_500;
const TRACED = { traceHolds: true };
const HERE = fileURLToPath(import.meta.url);

const server = await forFile(startRedis());

const bundle = bundledWorker("../entries/inspection/presence-worker.ts");

let names = 0;
const fresh = () => `traced-${++names}`;
const open = (options: LockClientOptions = TRACED) => new LockClient(server.connect(), options);

/** The line of this file that calls this function. */
function line(): number {
  return Number(/:(\d+):\d+\)?$/.exec((new Error().stack ?? "").split("\n")[2] ?? "")?.[1]);
}

/** The call site of the first holder: from the client's own record, or from its presence in Redis. */
async function callSite(client: LockClient, name: string): Promise<string | undefined> {
  return (await client.inspect(name))?.holders[0]?.callSite;
}

/** A line of this file, and the text before the place. */
function at(text: string | undefined): { readonly line: number; readonly before: string } {
  const [, before = "", number] = new RegExp(`^(.*?)\\(?${HERE}:(\\d+):\\d+\\)?$`).exec(text ?? "") ?? [];
  return { line: Number(number), before };
}

describe.each(byName(WITH_GROUP))("%s", (_, kind) => {
  test("lock, tryLock and run tell the line that called them", async () => {
    await using client = open();
    const name = fresh();
    const lock = kind.make(client, name);
    const [locked, first] = [await lock.lock(), line()];
    expect(at(await callSite(client, name)).line).toBe(first);
    await locked.unlock();
    const [tried, second] = [await lock.tryLock(), line()];
    expect(at(await callSite(client, name)).line).toBe(second);
    await tried?.unlock();
    const told = () => callSite(client, name);
    const [run, third] = [await lock.run(told), line()];
    expect(at(run).line).toBe(third);
  });

  test("a hold that had to wait tells where its call was made", async () => {
    await using client = open();
    await using other = open({});
    const name = fresh();
    const theirs = await kind.rival.make(other, name).lock();
    const [call, called] = [kind.make(client, name).lock(), line()];
    await theirs.unlock();
    const hold = await call;
    expect(at(await callSite(client, name)).line).toBe(called);
    await hold.unlock();
  });
});

test("without the option nothing is told, here or in Redis", async () => {
  await using client = open({ watchdogTimeout: QUICK });
  await using looking = open();
  const name = fresh();
  const hold = await client.getLock(name).lock();
  expect((await client.inspect(name))?.holders[0]).not.toHaveProperty("callSite");
  const seen = await until("it is told", async () => {
    const [holder] = (await looking.inspect(name))?.holders ?? [];
    return holder?.since ? holder : undefined;
  });
  expect(seen).not.toHaveProperty("callSite");
  const holds = String(await server.call("HGET", `holdfast_client:${client.id}`, "holds"));
  expect((JSON.parse(holds) as unknown[][]).map((told) => told.length)).toEqual([5]);
  await hold.unlock();
});

test("others see it: by inspect and list, with the function's name", async () => {
  await using client = open({ ...TRACED, watchdogTimeout: QUICK });
  await using looking = open({});
  const name = fresh();
  const document = client.getReadWriteLock(name);
  let called = 0;
  async function bookTheOrder(): Promise<Hold> {
    called = line() + 1;
    return document.writeLock().lock();
  }
  const hold = await bookTheOrder();
  const seen = await until("it is told", () => callSite(looking, name));
  expect(at(seen)).toEqual({ line: called, before: "bookTheOrder " });
  for await (const { holders } of looking.list({ match: name })) expect(holders[0]?.callSite).toBe(seen);
  await hold.unlock();
});

test("of nested holds it is the outermost, as long as that is held", async () => {
  await using client = open();
  const name = fresh();
  const lock = client.getLock(name);
  const [outer, first] = [await lock.lock(), line()];
  const [inner, second] = [await lock.lock({ owner: outer }), line()];
  expect(at(await callSite(client, name)).line).toBe(first);
  await outer.unlock();
  expect(at(await callSite(client, name)).line).toBe(second);
  await inner.unlock();
});

test("the code of the package's entries is passed over", async () => {
  await using client = open();
  const name = fresh();
  const method = { value: () => callSite(client, name) };
  const { value: sell } = locked(client, name)({}, "sell", method);
  const [told, called] = [await sell?.(), line()];
  expect(at(told).line).toBe(called);
});

test("of a group each member's client tells, or not, by its own option; a late member too", async () => {
  const servers = [server, await startRedis(), await startRedis()];
  const clients = servers.map((each, i) => new LockClient(each.connect(), { traceHolds: i > 0 }));
  const [silent, traced, other] = clients as [LockClient, LockClient, LockClient];
  const name = fresh();
  const locks = clients.map((client) => client.getLock(name));
  for (const group of [new MultiLock(...locks), new RedLock(...locks)]) {
    const [hold, called] = [await group.lock(), line()];
    await until("all members are held", () => hold.members.length === 3);
    for (const client of [traced, other]) expect(at(await callSite(client, name)).line).toBe(called);
    expect(await callSite(silent, name)).toBeUndefined();
    await hold.unlock();
  }
  for (const client of clients) await client.close();
  for (const each of servers.slice(1)) await each.stop();
});

test("a bundle of all code tells the place that called", async () => {
  await using worker = await startWorker(bundle());
  await using looking = open({});
  const name = fresh();
  await worker.request<string>("hold", [server.url, name, QUICK]);
  const seen = await until("it is told", () => callSite(looking, name));
  expect(seen).toMatch(/^(Object\.)?hold \(.*worker\.cjs:\d+:\d+\)$/);
});

test("the place is one line of bounded length, whatever the function's name", async () => {
  await using client = open();
  const name = fresh();
  const take = () => client.getLock(name).lock();
  Object.defineProperty(take, "name", { value: `a\n at b ${"c".repeat(1_000)}` });
  const hold = await take();
  const told = await callSite(client, name);
  expect(told?.length).toBeLessThanOrEqual(200);
  expect(told).not.toContain("\n");
  await hold.unlock();
});

test("stacks that are not as usual cost nothing but the place", async () => {
  await using client = open();
  const [limit, prepare] = [Error.stackTraceLimit, Error.prepareStackTrace];
  try {
    Error.stackTraceLimit = 0;
    const short = fresh();
    const hold = await client.getLock(short).lock();
    expect(Error.stackTraceLimit).toBe(0);
    expect(await callSite(client, short)).toContain(HERE);
    await hold.unlock();
    Error.prepareStackTrace = (_, frames) => frames;
    const odd = fresh();
    const other = await client.getLock(odd).lock();
    expect((await client.inspect(odd))?.holders[0]).not.toHaveProperty("callSite");
    await other.unlock();
  } finally {
    Object.assign(Error, { stackTraceLimit: limit, prepareStackTrace: prepare });
  }
});

test("a place that another program wrote is bounded, or left out", async () => {
  await using client = open();
  const id = "0e8fd4a2-5f7c-4d3e-9b1a-6c5d4e3f2a1b";
  const places = [
    ["long", `x\n${"y".repeat(500)}`],
    ["odd", 7],
    ["empty", ""],
  ] as const;
  const holds = places.map(([name, place], i) => [name, "lock", `${id}:${i}`, 1, 1, 0, place]);
  await server.call("ZADD", "holdfast_clients", "9e15", id);
  const fields = { label: "b", host: "h", pid: "1", holds: JSON.stringify(holds), waits: "[]" };
  await server.call("HSET", `holdfast_client:${id}`, ...Object.entries(fields).flat());
  for (const [i, [name]] of places.entries()) {
    await server.call("HSET", name, `${id}:${i}`, "1");
    await server.call("PEXPIRE", name, "60000");
  }
  expect(await callSite(client, "long")).toBe(`…${"y".repeat(199)}`);
  for (const name of ["odd", "empty"])
    expect((await client.inspect(name))?.holders[0]).not.toHaveProperty("callSite");
  await server.call("DEL", "holdfast_clients", `holdfast_client:${id}`, ...places.map(([name]) => name));
});
