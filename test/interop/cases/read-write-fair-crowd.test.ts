/** Java threads and Node tasks on one lock, as fast as they can: no owner is ever inside with one that it excludes. */
import { expect, test } from "vitest";
import { fairQueue } from "../../../src/base/names.js";
import { failOnUnhandledRejections, pause } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { type Scene, withRedisson } from "../scene.js";
import { keysLeft, newParty, type Party, SIDES } from "./party.js";

failOnUnhandledRejections();

const MS = 2_000;
/** If a wake-up is lost on either side, it costs this long, but does not fail the test. */
const options = { watchdogTimeout: 3_000, pollCap: 3_000 };

async function crowd(scene: Scene, ofEachSide: number): Promise<Party[]> {
  const java = await scene.newJava({ watchdog: options.watchdogTimeout });
  const sides = SIDES.flatMap((side) => Array.from({ length: ofEachSide }, () => side));
  return Promise.all(sides.map((side) => newParty(scene, side, { java, node: options })));
}

/** Repeats the work until the time is over; resolves with the number of repetitions. */
async function often(work: () => Promise<void>): Promise<number> {
  const ends = performance.now() + MS;
  let times = 0;
  for (; performance.now() < ends; times++) await work();
  return times;
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

withRedisson("crowds of both sides", (scene) => {
  /** Reads, then writes: two at the same time would lose a count. */
  async function count(counter: string): Promise<void> {
    const before = Number(await scene.redis.get(counter));
    await scene.redis.set(counter, before + 1);
  }

  test("a fair lock: no count is lost, nobody has a second turn before all have had one, and nothing is left", async () => {
    const name = scene.name();
    const counter = `counter of ${name}`;
    const parties = await crowd(scene, 4);
    const gate = await scene.node.getFairLock(name).lock();
    const order: Party[] = [];
    const working = parties.map((party) => {
      const lock = party.take("fair", name);
      return often(async () => {
        await lock.lock();
        order.push(party);
        await count(counter);
        await lock.unlock();
      });
    });
    await until("all are queued", async () => (await scene.redis.llen(fairQueue(name))) === parties.length);
    await gate.unlock();
    const turns = await Promise.all(working);
    expect(Number(await scene.redis.get(counter))).toBe(sum(turns));
    // A party that was served queues again behind all the others.
    expect(new Set(order.slice(0, parties.length)).size).toBe(parties.length);
    await scene.redis.del(counter);
    expect(await keysLeft(scene, name)).toEqual([]);
  });

  test("a read-write lock: no count is lost, no reader sees a torn value, and nothing is left", async () => {
    const name = scene.name();
    const [one, two] = [`one of ${name}`, `two of ${name}`];
    const parties = await crowd(scene, 4);
    const readers = parties.filter((_, i) => i % 2 === 0);
    const writers = parties.filter((_, i) => i % 2 === 1);
    const reading = readers.map((party) => {
      const lock = party.take("read", name);
      return often(async () => {
        await lock.lock();
        const seen = await scene.redis.get(one);
        expect(await scene.redis.get(two)).toBe(seen);
        await lock.unlock();
        await pause(5); // a gap for the writers, because Java's readers leave them none
      });
    });
    const writing = writers.map((party) => {
      const lock = party.take("write", name);
      return often(async () => {
        await lock.lock();
        await count(one);
        await count(two);
        await lock.unlock();
      });
    });
    const [reads, writes] = await Promise.all([Promise.all(reading), Promise.all(writing)]);
    expect(Number(await scene.redis.get(one))).toBe(sum(writes));
    expect(Number(await scene.redis.get(two))).toBe(sum(writes));
    for (const times of [...reads, ...writes]) expect(times).toBeGreaterThan(0);
    await scene.redis.del(one, two);
    expect(await keysLeft(scene, name)).toEqual([]);
  });
});
