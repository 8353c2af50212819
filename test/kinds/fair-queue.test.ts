/** The queue on the server: which waiters count as alive, beside Redisson's, and what it costs to keep a ticket. */
import { expect, test } from "vitest";
import { recordEvents } from "../contract/helpers.js";
import { pause, SOON, soon, useStage, watch } from "../faults/harness.js";
import { countCommands, until } from "../support/index.js";
import { keysOf, NEVER, Scene } from "./helpers.js";

const stage = await useStage("standalone");

const patient = { pollCap: NEVER };

/** Adds a waiter to the end of the queue, as Redisson would; without `score` a waiter whose time-out key was lost. */
async function enqueue(scene: Scene, waiter: string, score?: number): Promise<void> {
  if (score !== undefined) await scene.call("ZADD", keysOf.timeouts(scene.name), score, waiter);
  await scene.call("RPUSH", keysOf.queue(scene.name), waiter);
}

async function scores(scene: Scene, key: (name: string) => string): Promise<number[]> {
  return ((await scene.state(key(scene.name))).value as [string, number][]).map(([, score]) => score);
}

test("a waiter of Redisson is respected until its time is over, and skipped then", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const over = (await scene.now()) + 1_500;
  await enqueue(scene, "java:1", over);
  expect(await scene.fair(0).tryLock()).toBeNull();
  const first = watch(scene.fair(0).lock());
  await scene.untilQueued(2);
  const second = watch(scene.fair(1).lock());
  await scene.untilQueued(3);
  expect((await scene.queue())[0]).toBe("java:1");
  const hold = await soon(first);
  expect(await scene.now()).toBeGreaterThanOrEqual(over);
  expect(second.state).toBe("pending");
  await hold.unlock();
  await (await soon(second)).unlock();
  await scene.expectNothingLeft();
});

test("live waiters keep their places while a holder renews for much longer than the grace of each", async () => {
  const options = { fairWaitTimeout: 2_000, pollCap: 1_500 };
  await using scene = await Scene.of(
    stage,
    { watchdogTimeout: 4_500, ...options },
    options,
    options,
    options,
  );
  const seen = recordEvents(scene.client(0));
  const hold = await scene.fair(0).lock();
  const calls = [];
  for (const [n, i] of [1, 2, 1, 2].entries()) {
    calls.push(watch(scene.fair(i).lock()));
    await scene.untilQueued(n + 1);
  }
  const queue = await scene.queue();
  const renewals = (): number => seen.filter(({ name }) => name === "renewed").length;
  // Five renewals take 7.5 s. Unrenewed, the first ticket would last 6.5 s, and the sign that its waiter is alive 4.5 s.
  while (renewals() < 5) {
    // Tries of other clients remove dead waiters from the queue, and would remove these.
    expect(await scene.fair(3).tryLock()).toBeNull();
    expect(hold.isHeld).toBe(true);
    const now = await scene.now();
    // Redisson reads only these time-outs to know which waiters are alive.
    expect(Math.min(...(await scores(scene, keysOf.timeouts)))).toBeGreaterThan(now);
    expect(await scene.queue()).toEqual(queue);
    await pause(50);
  }
  await hold.unlock();
  for (const call of calls) await (await soon(call)).unlock();
  await scene.expectNothingLeft();
});

test("fifty idle waiters of one process keep their places by one command for each poll", async () => {
  const pollCap = 600;
  await using scene = await Scene.of(stage, {}, { pollCap });
  const hold = await scene.fair(0).lock({ lease: 120_000 });
  const calls = Array.from({ length: 50 }, () => watch(scene.fair(1).run(() => {})));
  await scene.untilQueued(50);
  await until("all listen", async () => (await scene.listeners()) === 50);
  await until("all have asked twice", () => scene.asked(1) >= 100);
  await using counter = await countCommands(stage.server);
  const before = await scores(scene, keysOf.alive);
  await counter.reset();
  await pause(3 * pollCap);
  await counter.settle();
  const sent = counter.all().filter(scene.own).length;
  console.info(`50 idle waiters of a process in 3 polls: ${sent} commands`);
  expect(sent).toBeGreaterThanOrEqual(1);
  expect(sent).toBeLessThanOrEqual(6);
  const after = await scores(scene, keysOf.alive);
  expect(after).toHaveLength(50);
  expect(Math.min(...after)).toBeGreaterThan(Math.max(...before));
  await hold.unlock();
  await Promise.all(calls.map((call) => soon(call, 2 * SOON)));
  await scene.expectNothingLeft();
});

test("the word on who is alive lapses by itself, and with the last waiter no queue is left", async () => {
  await using scene = await Scene.of(stage, patient, { ...patient, fairWaitTimeout: 1_000 });
  const hold = await scene.fair(0).lock();
  const call = await scene.parked(1, () => scene.fair(1).lock());
  const [queue, timeouts, alive] = await Promise.all(
    [keysOf.queue, keysOf.timeouts, keysOf.alive].map((key) => scene.state(key(scene.name))),
  );
  const [waiter] = await scene.queue();
  expect(queue).toEqual({ type: "list", value: [waiter], ttl: -1 });
  expect(timeouts).toEqual({ type: "zset", value: [[waiter, expect.any(Number)]], ttl: -1 });
  expect(alive).toEqual({ type: "zset", value: [[waiter, expect.any(Number)]], ttl: expect.any(Number) });
  expect(alive?.ttl).toBeGreaterThan(0);
  for (const score of await scores(scene, keysOf.timeouts)) expect(Number.isInteger(score)).toBe(true);
  await hold.unlock();
  const mine = await soon(call);
  expect(mine.ownerId).toBe(waiter);
  expect(Object.keys(await scene.bed(0).keys()).filter((key) => /queue|timeout|alive/.test(key))).toEqual([]);
  await mine.unlock();
  await scene.expectNothingLeft();
});
