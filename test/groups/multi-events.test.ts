/** The events of a MultiLock: each client of a member tells those of the group, and those of its own members. */
import { expect, test } from "vitest";
import { type LockClient, MultiLock } from "../../src/index.js";
import { recordEvents, type SeenEvent } from "../contract/helpers.js";
import { soon } from "../faults/harness.js";
import { until } from "../support/index.js";
import { Hall, NEVER, useStages } from "./helpers.js";

const stages = await useStages();

const patient = { pollCap: NEVER };

interface Told extends AsyncDisposable {
  readonly hall: Hall;
  readonly multi: MultiLock;
  /** The events with that name, of the client of `a` and of the client of `b`. */
  of(name: SeenEvent["name"]): [SeenEvent["payload"][], SeenEvent["payload"][]];
}

/** A fair member of one client and a write side of another, on two servers; a rival has a client on each. */
async function open(): Promise<Told> {
  const hall = await Hall.of(stages, patient, { ...patient, server: 1 }, {}, { server: 1 });
  const multi = new MultiLock(hall.client(0).getFairLock(hall.name("a")), hall.write(1, "b"));
  const seen = [hall.client(0), hall.client(1)].map((client: LockClient) => recordEvents(client));
  const of: Told["of"] = (name) =>
    seen.map((events) =>
      events.filter((event) => event.name === name).map(({ payload }) => payload),
    ) as ReturnType<Told["of"]>;
  return { hall, multi, of, [Symbol.asyncDispose]: () => hall[Symbol.asyncDispose]() };
}

test("acquired and released: of the group on every client, of each member on its own", async () => {
  await using it = await open();
  const { hall, multi, of } = it;
  const hold = await multi.lock();
  await hold.unlock();
  const [a, b] = hold.members;
  const group = { lockName: multi.name, kind: "multi", ownerId: hold.ownerId };
  const fair = { lockName: hall.name("a"), kind: "fair", ownerId: a?.ownerId };
  const write = { lockName: hall.name("b"), kind: "readwrite", ownerId: b?.ownerId };
  for (const [name, duration, more] of [
    ["acquired", "waited", { nested: false }],
    ["released", "held", {}],
  ] as const) {
    const time = { [duration]: expect.any(Number), ...more };
    const [one, two] = of(name);
    expect(one).toHaveLength(2);
    expect(one).toEqual(
      expect.arrayContaining([
        { ...group, ...time },
        { ...fair, ...time },
      ]),
    );
    expect(two).toHaveLength(2);
    expect(two).toEqual(
      expect.arrayContaining([
        { ...group, ...time },
        { ...write, ...time },
      ]),
    );
    for (const payload of [...one, ...two]) expect(payload[duration]).toBeGreaterThanOrEqual(0);
  }
  for (const name of ["waiting", "lost", "error", "suspended"] as const) expect(of(name)).toEqual([[], []]);
});

test("waiting: once of the group, however many members it waits for", async () => {
  await using it = await open();
  const { hall, multi, of } = it;
  const theirs = [await hall.client(2).getFairLock(hall.name("a")).lock(), await hall.write(3, "b").lock()];
  const call = await hall.parked("a", () => multi.lock());
  await theirs[0]?.unlock();
  await until("it waits for b", async () => (await hall.channels()).join().includes(hall.name("b")));
  const [one, two] = of("waiting");
  const kinds = (told: SeenEvent["payload"][]) => told.map(({ kind }) => kind).sort();
  expect([kinds(one), kinds(two)]).toEqual([
    ["fair", "multi"],
    ["multi", "readwrite"],
  ]);
  for (const told of [one, two])
    expect(told).toContainEqual(expect.objectContaining({ lockName: multi.name, kind: "multi" }));
  await theirs[1]?.unlock();
  await (await soon(call)).unlock();
  expect(of("acquired")[0].find(({ kind }) => kind === "multi")?.waited).toBeGreaterThan(0);
});

test("a call that is not granted tells of no hold, though it had some of the members", async () => {
  await using it = await open();
  const { hall, multi, of } = it;
  const theirs = await hall.write(3, "b").lock();
  expect(await multi.tryLock()).toBeNull();
  await expect(multi.lock({ wait: 2_500 })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
  await theirs.unlock();
  await hall.expectNothingLeft();
  expect(of("acquired")).toEqual([[], []]);
  expect(of("released")).toEqual([[], []]);
});

test("lost: of the member on its client, of the group on both, and the rest is released", async () => {
  await using it = await open();
  const { hall, multi, of } = it;
  const hold = await multi.lock();
  await hall.write(1, "b").forceUnlock();
  await hall.expectNothingLeft();
  const group = { lockName: multi.name, kind: "multi", reason: "forced", ownerId: hold.ownerId };
  const [one, two] = of("lost");
  expect(one).toEqual([expect.objectContaining(group)]);
  expect(two).toHaveLength(2);
  expect(two).toContainEqual(expect.objectContaining(group));
  expect(two).toContainEqual(expect.objectContaining({ lockName: hall.name("b"), reason: "forced" }));
  await until("the other member is released", () => of("released")[0].length > 0);
  expect(of("released")).toEqual([[expect.objectContaining({ lockName: hall.name("a"), kind: "fair" })], []]);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

test("released, when a release that got no answer comes through in the background", async () => {
  await using hall = await Hall.of(stages, {}, { server: 1, commandTimeout: 3_000 });
  const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
  const events = recordEvents(hall.client(0));
  const hold = await multi.lock({ lease: 60_000 });
  hall.bed(1).proxy.blackhole();
  await expect(hold.unlock()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  hall.bed(1).proxy.restore();
  await hall.expectNothingLeft();
  const told = () => events.filter(({ name, payload }) => name === "released" && payload.kind === "multi");
  await until("it is told", () => told().length > 0);
  await until("a further call tells so", () => hold.unlock().then(() => true));
  expect(told()).toHaveLength(1);
});

test("lost, when a release that got no answer finds a member gone [B114]", async () => {
  await using hall = await Hall.of(stages, {}, { server: 1, commandTimeout: 3_000 });
  const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
  const events = recordEvents(hall.client(0));
  const hold = await multi.lock({ lease: 60_000 });
  hall.bed(1).proxy.blackhole();
  await hall.redis(1).del(hall.name("b"));
  await expect(hold.unlock()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  hall.bed(1).proxy.restore();
  await until("it is told", () =>
    events.some(({ name, payload }) => name === "lost" && payload.kind === "multi"),
  );
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  await hall.expectNothingLeft();
});

test("listeners run outside every scope, and one that throws disturbs nothing", async () => {
  await using it = await open();
  const { hall, multi } = it;
  const inside: Promise<number>[] = [];
  hall.client(0).on("acquired", () => {
    inside.push(multi.getHoldCount());
    throw new Error("a listener's own");
  });
  await hall.client(0).scope(async () => {
    await multi.lock();
    expect(await multi.getHoldCount()).toBe(1);
    await multi.unlock();
  });
  await multi.run(() => {});
  expect(inside.length).toBeGreaterThan(0);
  expect(new Set(await Promise.all(inside))).toEqual(new Set([0]));
  await hall.expectNothingLeft();
});
