/** A MultiLock whose members are in slots of all masters is taken and given back member by member. */
import { expect, test } from "vitest";
import { type Lock, LockClient, MultiLock } from "../../src/index.js";
import { forFile, type RedisServer, startCluster, UNHURRIED } from "../support/index.js";

const NAMES = ["apple", "birch", "cedar", "date", "elm", "fig"];

const cluster = await forFile(startCluster());
const ours = await forFile(new LockClient(cluster.connect(), UNHURRIED));
const theirs = await forFile(new LockClient(cluster.connect(), UNHURRIED));

/** A lock of each kind, and one more plain lock. */
function membersOf(client: LockClient): Lock[] {
  const [apple = "", birch = "", cedar = "", date = "", elm = "", fig = ""] = NAMES;
  return [
    client.getLock(apple),
    client.getFairLock(birch),
    client.getFencedLock(cedar),
    client.getReadWriteLock(date).readLock(),
    client.getReadWriteLock(elm).writeLock(),
    client.getLock(fig),
  ];
}

async function mastersOf(names: readonly string[]): Promise<Set<RedisServer>> {
  return new Set(await Promise.all(names.map((name) => cluster.masterFor(name))));
}

test("members on all masters are held together and given back together, and while one is not free the others are", async () => {
  expect((await mastersOf(NAMES)).size).toBe(3);
  const held = await theirs.getLock("fig").lock();
  const waits = new Promise((resolve) => ours.once("waiting", resolve));
  const asked = new MultiLock(...membersOf(ours)).lock();
  await waits;
  for (const lock of membersOf(theirs).slice(0, -1)) await (await lock.lock()).unlock();
  await held.unlock();
  const hold = await asked;
  expect(hold.members).toHaveLength(NAMES.length);
  expect(await new MultiLock(...membersOf(theirs)).tryLock()).toBeNull();
  await hold.unlock();
  for (const name of NAMES) expect(await (await cluster.masterFor(name)).call("EXISTS", name), name).toBe(0);
});
