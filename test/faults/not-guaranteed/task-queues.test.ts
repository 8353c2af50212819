/**
 * Produces what is not guaranteed: a task queue starts a task of one request in the async context of another's, which holds
 * the lock. Two are inside then, and each cure keeps the second one out.
 */
import { AsyncResource } from "node:async_hooks";
import { EventEmitter } from "node:events";
// @ts-expect-error: no types
import async from "async";
import Bottleneck from "bottleneck";
import fastify from "fastify";
import fastq from "fastq";
import PQueue from "p-queue";
import { expect, test } from "vitest";
import { lockPlugin, lockScope } from "../../../src/entries/http.js";
import { createTestClient } from "../../../src/entries/testing.js";
import type { Lock, LockClient } from "../../../src/index.js";

type Work = () => Promise<unknown>;
type Push = (task: Work) => Promise<unknown>;

/** Each runs one task at a time. */
const QUEUES: Readonly<Record<string, () => Push>> = {
  "p-queue 8": () => {
    const queue = new PQueue({ concurrency: 1 });
    return (task) => queue.add(task);
  },
  fastq: () => {
    const queue = fastq.promise((task: Work) => task(), 1);
    return (task) => queue.push(task);
  },
  bottleneck: () => {
    const queue = new Bottleneck({ maxConcurrent: 1 });
    return (task) => queue.schedule(task);
  },
  async: () => {
    const queue = async.queue(async (task: Work) => task(), 1);
    return (task) => queue.pushAsync(task);
  },
};

const held = async (lock: Lock, work: Work) => {
  await using _hold = await lock.lock();
  return await work();
};

/** Work that holds the lock. */
const HOLDERS: Readonly<Record<string, (client: LockClient, lock: Lock, work: Work) => Promise<unknown>>> = {
  "lock.run": (_client, lock, work) => lock.run(work),
  "client.scope": (client, lock, work) => client.scope(() => held(lock, work)),
  lockScope: (client, lock, work) => {
    const response = new EventEmitter();
    return new Promise((resolve) => {
      lockScope(client)({}, response, () => resolve(held(lock, work).finally(() => response.emit("close"))));
    });
  },
  lockPlugin: async (client, lock, work) => {
    await using app = fastify();
    await app.register(lockPlugin, { client });
    app.get("/", () => held(lock, work));
    return (await app.inject("/")).json();
  },
};

const CURES: Readonly<Record<string, (task: Work, client: LockClient) => Work>> = {
  "AsyncResource.bind": (task) => AsyncResource.bind(task),
  "a scope round the task": (task, client) => () => client.scope(task),
  'reentrancy: "explicit"': (task) => task,
};

const cases = Object.keys(QUEUES).flatMap((queue) => Object.keys(HOLDERS).map((holder) => [queue, holder]));

test.each(cases)(
  "a task of another request that %s starts in the context of %s is inside with it, and not with a cure",
  async (queue, holder) => {
    const elsewhere = new AsyncResource("request");
    const enters = async (way: (task: Work, client: LockClient) => Work, options = {}) => {
      await using client = createTestClient(options).client;
      const lock = client.getLock("stock:42");
      const task = async () => {
        const hold = await lock.tryLock();
        await hold?.unlock();
        return [hold !== null, await lock.run(() => true, { wait: 0 }).catch(() => false)];
      };
      const push = (QUEUES[queue] as () => Push)();
      return await HOLDERS[holder]?.(client, lock, () => {
        void push(async () => {});
        return elsewhere.runInAsyncScope(() => push(way(task, client)));
      });
    };
    expect(await enters((task) => task)).toEqual([true, true]);
    for (const [cure, way] of Object.entries(CURES))
      expect(
        await enters(way, cure.startsWith("reentrancy") ? { reentrancy: "explicit" } : {}),
        cure,
      ).toEqual([false, false]);
  },
);
