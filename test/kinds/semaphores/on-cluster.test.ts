/** Semaphores and latches on a cluster: their keys share a slot, and their messages find the waiters. */
import { describe, expect, test } from "vitest";
import { LockClient, type LockClientOptions } from "../../../src/index.js";
import { nextEvent, untilWaiting } from "../../contract/helpers.js";
import { soon, useStage, watch } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { NEVER, UNKNOWN } from "./helpers.js";

const stage = await useStage("cluster");

let names = 0;

const shapes: [string, (name: string) => string][] = [
  ["no braces", (name) => name],
  ["a tag in front", (name) => `{${name}}:rest`],
  ["a tag at the end", (name) => `rest:{${name}}`],
];

interface Two extends AsyncDisposable {
  readonly mine: LockClient;
  readonly theirs: LockClient;
}

async function two(options: LockClientOptions = {}): Promise<Two> {
  const [mine, theirs] = [1, 2].map(
    () => new LockClient(stage.cluster.connect(), { pollCap: NEVER, ...options }),
  ) as [LockClient, LockClient];
  for (const client of [mine, theirs])
    await until("it is ready", () => client.ready().then(() => true), { timeout: 15_000 });
  return {
    mine,
    theirs,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([mine, theirs].map((client) => client.close({ timeout: 0 })));
    },
  };
}

describe.concurrent.each(["auto", false] as const)("shardedPubSub: %s", (shardedPubSub) => {
  describe.each(shapes)("a name with %s", (_, shape) => {
    const fresh = (): string => shape(`sync-${process.pid}-${++names}.`);

    test("a semaphore's waiters are woken by another client", async () => {
      await using it = await two({ shardedPubSub });
      const name = fresh();
      await it.mine.getSemaphore(name).trySetPermits(1);
      await it.mine.getSemaphore(name).acquire();
      const first = await untilWaiting(it.mine, () => it.mine.getSemaphore(name).acquire(2));
      const second = watch(it.mine.getSemaphore(name).acquire());
      await it.theirs.getSemaphore(name).release(3);
      await soon(watch(first.done));
      await soon(second);
      expect(await it.theirs.getSemaphore(name).availablePermits()).toBe(0);
    });

    test("an expirable semaphore's waiters are woken by another client, and permits can be given back there", async () => {
      await using it = await two({ shardedPubSub });
      const name = fresh();
      const [mine, theirs] = [
        it.mine.getPermitExpirableSemaphore(name),
        it.theirs.getPermitExpirableSemaphore(name),
      ];
      await mine.trySetPermits(1);
      const id = await mine.acquire({ lease: NEVER });
      const waiting = await untilWaiting(it.mine, () => mine.acquire({ lease: NEVER }));
      await theirs.release(id);
      const next = await soon(watch(waiting.done));
      await expect(theirs.release(UNKNOWN)).rejects.toMatchObject({ code: "NOT_OWNER" });
      expect(await theirs.tryRelease(next)).toBe(true);
      expect(await mine.getPermits()).toBe(1);
    });

    test("a latch's waiters are woken by another client", async () => {
      await using it = await two({ shardedPubSub });
      const name = fresh();
      await it.theirs.getCountDownLatch(name).trySetCount(2);
      const waiting = await untilWaiting(it.mine, () => it.mine.getCountDownLatch(name).await());
      const more = watch(it.mine.getCountDownLatch(name).await());
      await it.theirs.getCountDownLatch(name).countDown();
      await it.theirs.getCountDownLatch(name).countDown();
      expect(await soon(watch(waiting.done))).toBe(true);
      expect(await soon(more)).toBe(true);
    });
  });
});

test("renewals of permits in many slots go to their masters", async () => {
  await using it = await two({ watchdogTimeout: 6_000 });
  const all = Array.from({ length: 12 }, () => it.mine.getPermitExpirableSemaphore(`spread-${++names}`));
  const renewed = new Set<string>();
  it.mine.on("renewed", ({ lockName }) => renewed.add(lockName));
  const lost: unknown[] = [];
  it.mine.on("lost", (event) => lost.push(event));
  for (const permits of all) await permits.trySetPermits(1);
  const ids = await Promise.all(all.map((permits) => permits.acquire()));
  await until("each is renewed", () => renewed.size === all.length);
  await nextEvent(it.mine, "renewed");
  for (const [i, permits] of all.entries()) await permits.release(ids[i] ?? "");
  expect(lost).toEqual([]);
});

test.each(["a{b", "{}x", "a}b"])("a name that would spread its keys is refused: %s", async (name) => {
  await using it = await two();
  expect(() => it.mine.getSemaphore(name)).toThrow(RangeError);
  expect(() => it.mine.getPermitExpirableSemaphore(name)).toThrow(RangeError);
  expect(() => it.mine.getCountDownLatch(name)).toThrow(RangeError);
});
