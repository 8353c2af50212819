/** What the inspector tells who looks on: the locks and their history, by server-sent events. */
import { expect, onTestFinished, test } from "vitest";
import { History } from "../../../src/entries/inspector/history.js";
import { createInspector } from "../../../src/entries/inspector.js";
import { LockClient } from "../../../src/index.js";
import { forFile, PATIENCE, recordWarnings, startRedis, until } from "../../support/index.js";
import { allow, get, HERE, open, type Scene, unlock, Viewer } from "./page-requests.js";

const OFTEN = { every: 100 };
const BOTH = [["this process"], ["another process"]] as const;

/** A hold that is taken and told after all that a viewer has to be told first. */
async function afterThat({ hold }: Scene, ...viewers: Viewer[]): Promise<void> {
  const later = await hold("after that");
  for (const viewer of viewers) await viewer.learns("granted", later);
}

test.each(BOTH)("a grant and a release by %s are told once, to each who looks on", async (who) => {
  const place = open();
  const inspector = place.inspect(OFTEN);
  const viewers = [await Viewer.looking(inspector), await Viewer.looking(inspector)];
  const hold = await place.hold("told", who === "this process" ? place.client : place.other);
  for (const viewer of viewers) {
    await viewer.shows("told");
    await viewer.learns("granted", hold);
  }
  await hold.unlock();
  await afterThat(place, ...viewers);
  for (const viewer of viewers) {
    await viewer.shows("told", "gone");
    expect(viewer.learnt(hold)).toEqual(["granted", "released"]);
  }
});

test.each(["a lock", "both sides of a read-write lock"])(
  "the end of a nested hold is not told as that of the outer one, which was there before anybody looked on: %s [B188]",
  async (which) => {
    const place = open();
    const { client, inspect } = place;
    const sides = client.getReadWriteLock("nested");
    const lock = client.getLock("nested");
    const [outer, inner] = which === "a lock" ? [lock, lock] : [sides.writeLock(), sides.readLock()];
    const hold = await outer.lock();
    const viewer = await Viewer.of(inspect(OFTEN));
    await viewer.shows("nested");
    await (await inner.lock({ owner: hold })).unlock();
    await afterThat(place, viewer);
    await hold.unlock();
    await viewer.shows("nested", "gone");
    await viewer.learns("released", hold);
    expect(viewer.learnt(hold)).toEqual(["released"]);
  },
);

/** A history, and the looks of its feed. */
function follow(client: LockClient, name: string) {
  const history = new History(client);
  const found = async () => {
    const info = await client.inspect(name);
    return info ? [info] : [];
  };
  return {
    history,
    found,
    told: () => history.entries.map(({ what }) => what),
    look: async () => history.compare(await found()),
  };
}

test("a nested hold that is granted while the first look is under way is no grant of its own [B188]", async () => {
  const { client } = open();
  const lock = client.getLock("nested");
  const outer = await lock.lock();
  const { history, found, told, look } = follow(client, "nested");
  onTestFinished(history.follow());
  const before = await found();
  const nested = await lock.lock({ owner: outer });
  history.compare(before);
  await nested.unlock();
  await look();
  expect(told()).toEqual([]);
  await outer.unlock();
  await look();
  expect(told()).toEqual(["released"]);
});

test("a hold that was nested while nobody looked on is over with its last hold", async () => {
  const { client } = open();
  const lock = client.getLock("nested");
  const { history, told, look } = follow(client, "nested");
  const unfollow = history.follow();
  await look();
  const outer = await lock.lock();
  await look();
  unfollow();
  const inner = await lock.lock({ owner: outer });
  onTestFinished(history.follow());
  await look();
  await inner.unlock();
  await look();
  expect(told()).toEqual(["granted"]);
  await outer.unlock();
  await look();
  expect(told()).toEqual(["granted", "released"]);
});

test("a hold of this process is told once, however short it was, and though a look has still seen it", async () => {
  const { client } = open();
  const { history, found, told, look } = follow(client, "short");
  onTestFinished(history.follow());
  await look();
  const hold = await client.getLock("short").lock();
  const late = await found();
  await hold.unlock();
  history.compare(late);
  await look();
  expect(told()).toEqual(["granted", "released"]);
});

test("each entry is told once, also to pages that connect later, or after the last has left [B215]", async () => {
  const place = open();
  const inspector = place.inspect(OFTEN);
  const first = await Viewer.looking(inspector);
  const known = await place.hold("known", place.client);
  await first.learns("granted", known);
  const fresh = await place.hold("fresh", place.client);
  // Right after it, before it is told.
  const second = await Viewer.of(inspector);
  await second.shows("known");
  await afterThat(place, first, second);
  for (const viewer of [first, second])
    for (const hold of [known, fresh]) expect(viewer.learnt(hold)).toEqual(["granted"]);
  const last = await place.hold("last", place.client);
  await first.stop();
  await second.stop();
  const third = await Viewer.of(inspector);
  await third.learns("granted", last);
  await third.learns("granted", await place.hold("after leaving"));
  for (const hold of [known, fresh, last]) expect(third.learnt(hold)).toEqual(["granted"]);
});

test.each(BOTH)(
  "a hold of %s that ends while nobody looks on is told as over to the next page, which knows when it was last seen [B214] [B286]",
  async (who) => {
    const { client, other, inspect, hold } = open();
    const by = who === "this process" ? client : other;
    const inspector = inspect(OFTEN);
    const first = await Viewer.looking(inspector);
    const [ended, kept] = [await hold("unseen end", by), await hold("kept", by)];
    for (const each of [ended, kept]) await first.learns("granted", each);
    await first.stop();
    await ended.unlock();
    await new Promise((resolve) => setTimeout(resolve, 5));
    const reopened = Date.now();
    const second = await Viewer.of(inspector);
    const { seen, ...end } = await second.learns("released", ended);
    expect(end).not.toHaveProperty("held");
    // A timeline has nothing to show from then on.
    expect(seen).toBeLessThan(reopened);
    expect(second.learnt(kept)).toEqual(["granted"]);
    await kept.unlock();
    expect(await second.learns("released", kept)).toHaveProperty("held");
    expect(second.learnt(ended)).toEqual(["granted", "released"]);
  },
);

test.each(BOTH)("an unlock by an operator is told, once for each hold of %s [B189]", async (who) => {
  const place = open();
  const inspector = place.inspect({ ...OFTEN, authorize: allow });
  const viewer = await Viewer.looking(inspector);
  const hold = await place.hold("stuck", who === "this process" ? place.client : place.other);
  await viewer.learns("granted", hold);
  await unlock(inspector, { name: "stuck" });
  expect(await viewer.find("unlocked")).toMatchObject({ name: "stuck", ownerIds: [hold.ownerId] });
  await viewer.learns("unlocked", hold);
  await afterThat(place, viewer);
  expect(viewer.learnt(hold)).toEqual(["granted", "unlocked"]);
});

test("many viewers cost Redis what one does, and nobody costs nothing", async () => {
  const { inspect, server } = open();
  const scans = () => server.ran.splice(0).filter(({ name }) => name === "SCAN").length;
  const patient = inspect({ every: 10 * PATIENCE });
  await Promise.all(Array.from({ length: 20 }, () => Viewer.looking(patient)));
  // One of hashes, where locks are, and one of numbers.
  expect(scans()).toBe(2);
  const inspector = inspect(OFTEN);
  const viewer = await Viewer.of(inspector);
  await until("it has looked again", () => viewer.looks > 2);
  await viewer.stop();
  await get(inspector, "api/locks");
  scans();
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(scans()).toBe(0);
});

test("a HEAD of the events opens none [B158]", async () => {
  const inspector = open().inspect();
  for (let asked = 0; asked < 150; asked++) {
    const head = await inspector(new Request(`${HERE}api/events`, { method: "HEAD" }));
    expect([head.status, head.body]).toEqual([200, null]);
    expect(head.headers.get("content-type")).toMatch(/event-stream/);
  }
  await Viewer.looking(inspector);
});

test("weeks between two looks, or none after the first, are as long as Node's timers can be [B68]", async () => {
  const { inspect } = open();
  const warnings = recordWarnings();
  for (const every of [30 * 86_400_000, Number.POSITIVE_INFINITY]) {
    const viewer = await Viewer.looking(inspect({ every }));
    await get(inspect(), "api/locks"); // takes a turn of the event loop
    expect(viewer.looks).toBe(1);
  }
  expect(warnings).toEqual([]);
});

test("Redis that is away is trouble, also to who begins to look on, and then well again. Looks without an answer have no pause between them [B151] [B287]", async () => {
  const server = await forFile(startRedis());
  const client = new LockClient(server.connect({ maxRetriesPerRequest: 0 }), { commandTimeout: 1_000 });
  onTestFinished(() => client.close({ timeout: 0 }));
  const inspector = createInspector(client, OFTEN);
  const first = await Viewer.looking(inspector);
  await server.kill();
  expect(await first.find("trouble")).toMatchObject({ code: "UNAVAILABLE" });
  const second = await Viewer.of(inspector);
  expect(await second.find("trouble")).toMatchObject({ code: "UNAVAILABLE" });
  // However long a look had no answer, the next one is as soon as ever.
  const troubles = () => second.seen.flatMap(({ event, data }) => (event === "trouble" ? [data.at] : []));
  await until("it looks on", () => troubles().length > 2);
  expect(troubles()[2] - troubles()[1]).toBeLessThan(4_000);
  const looks = first.looks;
  await server.restart();
  await until("both look again", () => first.looks > looks && second.looks > 0);
  await client.close();
  await until("the streams end with their client", () => first.over && second.over);
});
