/** Contract section 8: the presence that clients publish, and what others see of it, in virtual time. */
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { ReplyError } from "../../../src/entries/testing/reply.js";
import { type LockClient, type LockClientOptions, MultiLock } from "../../../src/index.js";
import { failure, watch } from "../../support/place/index.js";
import { listed, open } from "./helpers.js";

/** The watchdog's time-out, and the round, a third of it. */
const TIMEOUT = 4_500;
const ROUND = 1_500;
/** Milliseconds after which what lasts is told. */
const TOLD = ROUND + 1_000;
const HERE = { host: hostname(), pid: process.pid };

const keyOf = ({ id }: LockClient) => `holdfast_client:${id}`;
const isTelling = (name: string): boolean => name.startsWith("client/");
const present = (options: LockClientOptions = {}) =>
  open({ presence: true, watchdogTimeout: TIMEOUT, ...options });

test("a hold and a wait are seen from elsewhere, with label, host, pid and since [§8 holder-client]", async () => {
  const { rivals, server, pass, party, with: by } = present();
  const mine = by({ label: "orders-1" }).client;
  const looking = party({ presence: false }).client;
  const begun = server.clock.wall();
  const hold = await mine.getLock("a").lock();
  const other = await rivals.getLock("a-other").lock();
  await pass(500);
  const waiter = watch(rivals.getLock("a").lock({ owner: other }));
  await pass(TOLD);
  const info = await looking.inspect("a");
  const client = { id: mine.id, label: "orders-1", ...HERE };
  expect(info?.holders).toMatchObject([{ ownerId: hold.ownerId, client, since: new Date(begun) }]);
  const label = `${HERE.host}:${HERE.pid}`;
  expect([rivals.label, mine.label]).toEqual([label, "orders-1"]);
  expect(info?.waiting).toEqual([
    expect.objectContaining({
      client: { id: rivals.id, label, ...HERE },
      since: new Date(begun + 500),
      holds: ["a-other"],
    }),
  ]);
  const clients = (await listed(looking)).map(({ holders }) => holders[0]?.client?.id);
  expect(clients).toEqual([mine.id, rivals.id]);
  await hold.unlock();
  await (await waiter.promise).unlock();
  await other.unlock();
  await pass(ROUND);
  expect(server.names().filter((name) => name.startsWith("holdfast_client:"))).toEqual([]);
});

test("a call that waits holds what it is made inside of, by whatever owner [B100]", async () => {
  const { client, rivals, pass } = present();
  const [outer, own, wanted] = ["outer", "own", "wanted"].map((name) => rivals.getLock(name));
  const group = new MultiLock(rivals.getLock("of a group"), rivals.getLock("of a group too"));
  const hold = await client.getLock("wanted").lock();
  const inner = () => wanted?.run(() => undefined);
  const outside = inner();
  const inside = outer?.run(() => rivals.scope(() => own?.run(() => group.run(inner))));
  await pass(TOLD);
  const { waiting } = (await client.inspect("wanted")) ?? {};
  expect(waiting?.map(({ holds }) => [...holds].sort())).toEqual([
    [],
    ["of a group", "of a group too", "outer", "own"],
  ]);
  await hold.unlock();
  await Promise.all([outside, inside]);
});

test("short holds tell nothing, and close takes back what was told [§8 presence]", async () => {
  const { client, server, call, pass, party } = present();
  const silent = party({ presence: false }).client;
  for (let i = 0; i < 50; i++) await client.getLock("short").run(() => pass(100));
  await silent.getLock("quiet").lock();
  expect(server.took().filter(isTelling)).toEqual([]);
  const hold = await client.getLock("kept").lock();
  await pass(ROUND);
  expect(server.took().filter(isTelling)).toHaveLength(1);
  for (const key of [keyOf(client), "holdfast_clients"]) {
    expect(server.ttl(key)).toBeGreaterThan(ROUND);
    expect(server.ttl(key)).toBeLessThanOrEqual(2 * ROUND);
  }
  expect(server.ttl(keyOf(silent))).toBe(-2);
  const fields = call(`HGETALL ${keyOf(client)}`) as string[];
  expect(fields.join(" ").length).toBeLessThan(400);
  expect(fields).toContain(`${HERE.host}:${HERE.pid}`);
  await client.close({ timeout: 0 });
  expect(server.ttl(keyOf(client))).toBe(-2);
  expect(call(`ZSCORE holdfast_clients ${client.id}`)).toBeNull();
  expect(hold.isHeld).toBe(false);
});

test.each([1, 1_001])(
  "of %i holds one command a round tells a thousand at most [§8 presence]",
  async (count) => {
    const { client, server, call, pass } = present({ label: "orders-7f9c" });
    const names = Array.from({ length: count }, (_, i) => `stock:${i}`);
    // With a lease, so that nothing is renewed.
    await Promise.all(names.map((name) => client.getLock(name).lock({ lease: 600_000 })));
    await pass(TOLD);
    server.took();
    await pass(5 * ROUND);
    expect(server.took()).toHaveLength(5);
    const fields = call(`HGETALL ${keyOf(client)}`) as string[];
    const told = JSON.parse(fields[fields.indexOf("holds") + 1] ?? "[]") as unknown[];
    expect(told).toHaveLength(Math.min(count, 1_000));
    const bytes = Buffer.byteLength(fields.join(""));
    expect(bytes).toBeLessThanOrEqual(400 + told.length * 120);
  },
);

test("a wait tells at most a hundred of the keys that its owner holds meanwhile [§8 presence]", async () => {
  const { client, rivals, pass } = present();
  const [owner, theirs] = [client.newOwner(), await rivals.getLock("wanted").lock()];
  const names = Array.from({ length: 101 }, (_, i) => `held:${i}`);
  await Promise.all(names.map((name) => client.getLock(name).lock({ owner })));
  const call = watch(client.getLock("wanted").lock({ owner }));
  await pass(TOLD);
  expect((await rivals.inspect("wanted"))?.waiting[0]?.holds).toEqual(names.slice(0, 100));
  await theirs.unlock();
  await call.promise;
});

test("what lasts for a second is told within the next one, at most once a second, whatever was told before [B280]", async () => {
  const { client, rivals, server, pass, party } = present({ watchdogTimeout: 60_000 });
  const looking = party({ presence: false }).client;
  const first = await client.getLock("a").lock();
  await rivals.getLock("b").lock();
  await pass(2_000);
  const begun = server.clock.wall();
  server.took();
  const second = await client.getLock("c").lock();
  watch(client.getLock("b").lock({ owner: first }));
  await pass(2_000);
  expect((await looking.inspect("c"))?.holders).toMatchObject([{ since: new Date(begun) }]);
  const [waiter] = (await looking.inspect("b"))?.waiting ?? [];
  expect(waiter).toMatchObject({ since: new Date(begun), holds: ["a"] });
  await second.unlock();
  // Whoever takes one after the other for more than a second is not told of more often.
  for (let i = 0; i < 100; i++) {
    watch(client.getLock(`d:${i}`).lock());
    await pass(100);
  }
  expect(server.took().filter(isTelling).length).toBeLessThanOrEqual(12);
  expect((await looking.inspect("d:80"))?.holders).toMatchObject([{ client: { id: client.id } }]);
});

test("in an outage no tellings pile up, and what is told after it is how things are then [B75]", async () => {
  const { a, client, rivals, server, pass } = present({ commandTimeout: 3_000 });
  const theirs = await rivals.getLock("a").lock();
  const waiting = watch(client.getLock("a").lock());
  await pass(TOLD);
  expect((await rivals.inspect("a"))?.waiting).toHaveLength(1);
  a.keep("requests");
  await pass(60_000);
  server.took();
  await a.letGo();
  // The client gives each telling up after the time of a command, but the connection still sends it.
  expect(server.took().filter(isTelling).length).toBeLessThanOrEqual(60_000 / 3_000 + 1);
  await theirs.unlock();
  await (await waiting.promise).unlock();
});

test("an owner that holds both sides is shown since its first hold, and holds the lock once [B77]", async () => {
  const { client, rivals, server, pass } = present();
  const sides = client.getReadWriteLock("a");
  await rivals.getLock("other").lock();
  const begun = server.clock.wall();
  await client.scope(async () => {
    await sides.writeLock().lock();
    await pass(3_000);
    await sides.readLock().lock();
    watch(client.getLock("other").lock());
    await pass(TOLD);
  });
  const info = await rivals.inspect("a");
  expect(info?.holders).toMatchObject([{ count: 2, since: new Date(begun) }]);
  expect((await rivals.inspect("other"))?.waiting).toMatchObject([{ holds: ["a"] }]);
});

test("what refused writes keep from being taken back is taken back after that, long before it expires [B220]", async () => {
  const { client, server, pass } = present({ watchdogTimeout: 300_000 });
  const hold = await client.getLock("told").lock({ lease: 3_600_000 });
  await pass(ROUND);
  expect(server.ttl(keyOf(client))).toBeGreaterThan(190_000);
  let refused = 0;
  server.instead = ({ name, args: [key] }) => {
    if (name !== "DEL" || key !== keyOf(client)) return undefined;
    refused++;
    throw new ReplyError("NOREPLICAS Not enough good replicas to write.");
  };
  await hold.unlock();
  await pass(105_000);
  expect(refused).toBeGreaterThan(0);
  expect(server.ttl(keyOf(client))).toBeGreaterThan(80_000);
  server.instead = () => undefined;
  await pass(10_000);
  expect(server.ttl(keyOf(client))).toBe(-2);
});

test("a process that dies is gone within two rounds", async () => {
  const { a, client, rivals, server, pass } = present();
  await client.getLock("a").lock({ lease: 60_000 });
  await pass(TOLD);
  expect((await rivals.inspect("a"))?.holders).toMatchObject([{ client: { id: client.id } }]);
  await a.cut();
  await pass(2 * ROUND);
  expect(server.ttl(keyOf(client))).toBe(-2);
  expect((await rivals.inspect("a"))?.holders).toMatchObject([{ client: null, since: null }]);
});

test("what is no presence disturbs nobody who looks [B79]", async () => {
  const { client, call } = present();
  const hold = await client.getLock("a").lock();
  // 1e300 is no time that a clock shows.
  const timeless = JSON.stringify([["a", "lock", 0, 1e300, 0]]);
  const found = [
    "SET holdfast_client:a text",
    "HSET holdfast_client:b label b host h pid x",
    "HSET holdfast_client:c label c host h pid 1 holds { waits [1,[2]]",
    `HSET holdfast_client:d label d host h pid 1 told 1e300 holds [] waits ${timeless}`,
  ];
  for (const line of found) call(line);
  for (const id of ["a", "b", "c", "d"]) call(`ZADD holdfast_clients 9e15 ${id}`);
  expect(await client.inspect("a")).toMatchObject({ holders: [{ ownerId: hold.ownerId }], waiting: [] });
});

test("WAIT_TIMEOUT names the holder as far as it is known [§8 wait-timeout-holder] [B298]", async () => {
  const { client, call, pass, with: by } = present({ label: "stock-1" });
  const textOf = async (waiting: LockClient, wait = 2_500) => {
    const refused = failure(waiting.getLock("a").lock({ wait }));
    await pass(wait);
    return (await refused).message;
  };
  const hold = await client.getLock("a").lock();
  const own = /was not free within 2500 ms; held by this process itself; wait longer/;
  expect(await textOf(client)).toMatch(own);
  expect(await textOf(client, 0)).toContain("held by this process itself");
  await pass(26_000);
  // Calls that end together are all told.
  const other = by({ label: "stock-2" }).client;
  for (const text of await Promise.all([textOf(other), textOf(other)]))
    expect(text).toContain(`held by stock-1 (pid ${process.pid}) for 31 s`);
  // A client of the same label in this process is this process.
  expect(await textOf(by({ label: "stock-1" }).client)).toContain("held by this process itself");
  await hold.unlock();
  call("HSET a b8a9c8e5-3c0c-4f5e-9f3a-1c2d3e4f5a6b:7 1");
  call("PEXPIRE a 60000");
  const theirs = "held by owner b8a9c8e5-3c0c-4f5e-9f3a-1c2d3e4f5a6b:7; wait longer";
  expect(await textOf(client)).toContain(theirs);
});

test("WAIT_TIMEOUT of a group names who holds a member, others before this process [B55]", async () => {
  const { client, pass, with: by } = present({ label: "stock-1" });
  const timedOut = async (...names: string[]) => {
    const refused = failure(
      new MultiLock(...names.map((name) => client.getLock(name))).lock({ wait: 2_500 }),
    );
    await pass(2_500);
    return (await refused).message;
  };
  await client.getLock("shelf:1").lock();
  await by({ label: "stock-2" }).client.getLock("shelf:2").lock();
  await pass(TOLD);
  const named = `held by stock-2 (pid ${process.pid}) for`;
  expect(await timedOut("shelf:2", "shelf:3")).toContain(named);
  expect(await timedOut("shelf:1", "shelf:2", "shelf:3")).toContain(named);
  expect(await timedOut("shelf:1", "shelf:3")).toContain("held by this process itself; wait longer");
});

test.each([
  [{ label: "" }, RangeError],
  [{ label: "x".repeat(201) }, RangeError],
  [{ label: 7 }, TypeError],
  [{ label: null }, TypeError],
  [{ presence: "yes" }, TypeError],
])("the options %j are refused [§8 label]", (options, error) => {
  expect(() => open(options as never)).toThrow(error);
});
