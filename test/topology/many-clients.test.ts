/** Many clients on one connection of the user: its emitter has no more listeners than one client needs. */
import { type EventEmitter, errorMonitor } from "node:events";
import { describe, expect, test } from "vitest";
import { LockClient, RedLock } from "../../src/index.js";
import { failOnUnhandledRejections, freshName, Stage, turn } from "../faults/harness.js";
import { forFile, recordWarnings, startRedis, UNHURRIED } from "../support/index.js";

failOnUnhandledRejections();

/** More than ten, because Node warns of the eleventh listener. */
const MANY = 25;

const warnings = recordWarnings();
const stage = await forFile(Stage.start(["standalone", "cluster"]));
const others = await Promise.all([forFile(startRedis()), forFile(startRedis())]);

/** The number of listeners of each event that clients listen to. */
function counts(emitter: EventEmitter): number[] {
  return [errorMonitor, "close", "ready", "refresh", "-node", "node error"].map((event) =>
    emitter.listenerCount(event),
  );
}

describe.each(["standalone", "cluster"] as const)("%s", (topology) => {
  test("no warning, and as many listeners as one client has [B36]", async () => {
    const redis = topology === "cluster" ? stage.cluster.connect() : stage.server.connect();
    const emitter = redis as unknown as EventEmitter;
    await redis.ping();
    const without = counts(emitter);
    const first = new LockClient(redis, UNHURRIED);
    const withOne = counts(emitter);
    const clients = Array.from({ length: MANY }, () => new LockClient(redis, UNHURRIED));
    await Promise.all(clients.map((client) => client.ready()));
    expect(counts(emitter)).toEqual(withOne);
    const name = freshName();
    let inside = 0;
    await Promise.all(clients.map((client) => client.getLock(name).run(() => void inside++)));
    expect(inside).toBe(MANY);
    await first.close();
    expect(counts(emitter)).toEqual(withOne);
    await Promise.all(clients.map((client) => client.close()));
    expect(counts(emitter)).toEqual(without);
    await turn();
    expect(warnings).toEqual([]);
  });
});

test("a client that is closed hears no more, the others do", async () => {
  await using bed = await stage.bed();
  const second = new LockClient(bed.redis, { commandTimeout: 60_000 });
  await bed.client.close();
  const lock = second.getLock(bed.name);
  const fault = bed.proxy.cutReplyOf(([verb = ""]) => verb.startsWith("EVAL"));
  const hold = await lock.lock();
  await fault.done;
  expect(await lock.getHoldCount({ owner: hold })).toBe(1);
  await hold.unlock();
  await second.close();
});

test("the first calls of many groups at once, on connections that are on their way", async () => {
  const connections = [stage.server, ...others].map((server) => server.connect());
  const locks = Array.from({ length: MANY }, (_, i) => {
    const members = connections.map((redis) =>
      new LockClient(redis, UNHURRIED).getLock(`${freshName()}${i}`),
    );
    return new RedLock(...members);
  });
  await Promise.all(locks.map((lock) => lock.run(() => {})));
  await turn();
  expect(warnings).toEqual([]);
});
