/**
 * The turns of MultiLock calls that have lost a round: the oldest goes first, and no call is held up by calls that wait
 * for its own owner.
 */
import { expect, test } from "vitest";
import { type Lock, LockClient, type MultiHold, MultiLock } from "../../src/index.js";
import { forFile, PATIENCE, startRedis, UNHURRIED, until } from "../support/index.js";

const server = await forFile(startRedis());
const client = await forFile(new LockClient(server.connect(), UNHURRIED));

let names = 0;

/** Locks that no other test uses. */
function locks(count: number): Lock[] {
  return Array.from({ length: count }, () => client.getLock(`lock-${++names}.`));
}

/** Gives each hold back as soon as it is granted; resolves when all were granted. */
async function passOn(asked: readonly Promise<MultiHold>[]): Promise<void> {
  await Promise.all(asked.map(async (each) => (await each).unlock()));
}

test("a call that re-enters is not held up by the turns of those who wait for its own owner", async () => {
  const [a, b, free] = locks(3) as [Lock, Lock, Lock];
  const blocker = await b.lock();
  let waiting = 0;
  /** How often a re-entering call had to wait. */
  let heldUp = 0;
  client.on("waiting", ({ kind, lockName }) => {
    if (kind !== "multi") return;
    if (lockName.includes(free.name)) heldUp++;
    else waiting++;
  });
  const suitors = Array.from({ length: 3 }, () => new MultiLock(a, b).lock());
  await until("they wait", () => waiting === 3);
  await a.run(async () => {
    // From now on the waiting groups get b one after the other, and are refused a.
    await blocker.unlock();
    for (let i = 0; i < 20; i++) {
      const hold = await new MultiLock(a, free).lock();
      await hold.unlock();
    }
  });
  expect(heldUp).toBe(0);
  await passOn(suitors);
});

test("of tasks that want many of a few locks without a pause, each gets its turn", async () => {
  const all = locks(6);
  const served = new Map<number, number>();
  let over = false;
  async function task(i: number): Promise<void> {
    const wanted = Array.from({ length: 3 }, (_, k) => all[(i + k * (1 + (i % 2))) % all.length] as Lock);
    while (!over) {
      await new MultiLock(...new Set(wanted)).run(() => new Promise((resolve) => setImmediate(resolve)));
      served.set(i, (served.get(i) ?? 0) + 1);
    }
  }
  const tasks = Array.from({ length: 24 }, (_, i) => task(i));
  await until("all were served three times", () => [...served.values()].filter((n) => n >= 3).length === 24, {
    timeout: 3 * PATIENCE,
  });
  over = true;
  await Promise.all(tasks);
});
