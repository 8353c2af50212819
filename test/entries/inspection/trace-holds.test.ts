/** The option `traceHolds`: what `inspect` reports of the place where a hold was taken, in virtual time. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { locked } from "../../../src/entries/decorator.js";
import { type Hold, type LockClient, MultiLock, RedLock } from "../../../src/index.js";
import { KINDS, openVirtual, RED } from "../../support/place/index.js";
import { listed, open } from "./helpers.js";

const HERE = fileURLToPath(import.meta.url);
const traced = () => open({ traceHolds: true, presence: true });

/** The line of this file that calls this function. */
function line(): number {
  return Number(/:(\d+):\d+\)?$/.exec((new Error().stack ?? "").split("\n")[2] ?? "")?.[1]);
}

/** The call site of the first holder: from the client's own record, or from its presence in Redis. */
async function callSite(client: LockClient, name = "job"): Promise<string | undefined> {
  return (await client.inspect(name))?.holders[0]?.callSite;
}

/** A line of this file, and the text before the place. */
function at(text: string | undefined): { readonly line: number; readonly before: string } {
  const [, before = "", number] = new RegExp(`^(.*?)\\(?${HERE}:(\\d+):\\d+\\)?$`).exec(text ?? "") ?? [];
  return { line: Number(number), before };
}

test.each(KINDS.map((kind) => [kind.name, kind] as const))(
  "%s: lock, tryLock and run tell the line that called them, also when they had to wait",
  async (_, kind) => {
    const { client, lock, rival, settle } = openVirtual(kind, { traceHolds: true });
    const [held, first] = [await lock.lock(), line()];
    expect(at(await callSite(client)).line).toBe(first);
    await held.unlock();
    const [tried, second] = [await lock.tryLock(), line()];
    expect(at(await callSite(client)).line).toBe(second);
    await tried?.unlock();
    const [run, third] = [await lock.run(() => callSite(client)), line()];
    expect(at(run).line).toBe(third);
    const theirs = await rival.lock();
    const [call, called] = [lock.lock(), line()];
    await settle();
    await theirs.unlock();
    await call;
    expect(at(await callSite(client)).line).toBe(called);
  },
);

test("without the option nothing is told, here or in Redis", async () => {
  const { client, rivals, pass, call } = open({ presence: true });
  await client.getLock("job").lock();
  await pass(12_000);
  for (const each of [client, rivals]) {
    const [holder] = (await each.inspect("job"))?.holders ?? [];
    expect(holder?.since).toBeInstanceOf(Date);
    expect(holder).not.toHaveProperty("callSite");
  }
  const holds = String(call(`HGET holdfast_client:${client.id} holds`));
  expect((JSON.parse(holds) as unknown[][]).map((told) => told.length)).toEqual([5]);
});

test("others see the place by inspect and list, with the function's name", async () => {
  const { client, rivals, pass } = traced();
  let called = 0;
  async function bookTheOrder(): Promise<Hold> {
    called = line() + 1;
    return client.getReadWriteLock("job").writeLock().lock();
  }
  await bookTheOrder();
  await pass(12_000);
  const seen = await callSite(rivals);
  expect(at(seen)).toEqual({ line: called, before: "bookTheOrder " });
  expect(await listed(rivals)).toMatchObject([{ holders: [{ callSite: seen }] }]);
});

test("of nested holds the place is that of the outermost, as long as that is held", async () => {
  const { client } = traced();
  const lock = client.getLock("job");
  const [outer, first] = [await lock.lock(), line()];
  const [, second] = [await lock.lock({ owner: outer }), line()];
  expect(at(await callSite(client)).line).toBe(first);
  await outer.unlock();
  expect(at(await callSite(client)).line).toBe(second);
});

test("the code of the package's entries is passed over", async () => {
  const { client } = traced();
  const { value: sell } = locked(client, "job")({}, "sell", { value: () => callSite(client) });
  const [told, called] = [await sell?.(), line()];
  expect(at(told).line).toBe(called);
});

test("of a group each member's client tells, or not, by its own option; a late member too", async () => {
  const { a, with: by, settle } = openVirtual(RED, { traceHolds: true });
  const silent = by({ traceHolds: false }).client;
  const clients = [silent, ...a.clients.slice(1)];
  const locks = clients.map((client) => client.getLock("job"));
  for (const group of [new MultiLock(...locks), new RedLock(...locks)]) {
    const [hold, called] = [await group.lock(), line()];
    await settle();
    expect(hold.members).toHaveLength(3);
    for (const client of clients.slice(1)) expect(at(await callSite(client)).line).toBe(called);
    expect(await silent.inspect("job")).toMatchObject({ holders: [{}] });
    expect(await callSite(silent)).toBeUndefined();
    await hold.unlock();
  }
});

test("the place is one line of bounded length, whatever the function's name", async () => {
  const { client } = traced();
  const take = () => client.getLock("job").lock();
  Object.defineProperty(take, "name", { value: `a\n at b ${"c".repeat(1_000)}` });
  await take();
  const told = await callSite(client);
  expect(told?.length).toBeLessThanOrEqual(200);
  expect(told).not.toContain("\n");
});

test("stacks that are not as usual cost nothing but the place", async () => {
  const { client } = traced();
  const [limit, prepare] = [Error.stackTraceLimit, Error.prepareStackTrace];
  try {
    Error.stackTraceLimit = 0;
    await client.getLock("short").lock();
    expect(Error.stackTraceLimit).toBe(0);
    expect(await callSite(client, "short")).toContain(HERE);
    Error.prepareStackTrace = (_, frames) => frames;
    await client.getLock("odd").lock();
    expect((await client.inspect("odd"))?.holders[0]).not.toHaveProperty("callSite");
  } finally {
    Object.assign(Error, { stackTraceLimit: limit, prepareStackTrace: prepare });
  }
});

test.each([
  ["bounded", `x\n${"y".repeat(500)}`, `…${"y".repeat(199)}`],
  ["left out", 7, undefined],
  ["left out", "", undefined],
])("a place that another program wrote is %s: %j", async (_, place, shown) => {
  const { client, server } = traced();
  const id = "0e8fd4a2-5f7c-4d3e-9b1a-6c5d4e3f2a1b";
  const holds = JSON.stringify([["job", "lock", `${id}:1`, 1, 1, 0, place]]);
  const fields = { label: "b", host: "h", pid: "1", holds, waits: "[]" };
  server.execute(["ZADD", "holdfast_clients", "9e15", id]);
  server.execute(["HSET", `holdfast_client:${id}`, ...Object.entries(fields).flat()]);
  server.execute(["HSET", "job", `${id}:1`, "1"]);
  const [holder] = (await client.inspect("job"))?.holders ?? [];
  expect([holder?.client?.label, holder?.callSite]).toEqual(["b", shown]);
});
