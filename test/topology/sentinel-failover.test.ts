/**
 * Failovers while every kind of lock is in use: the master is killed, asked to hand over, or hangs. Replicated holds are
 * kept, waiters go on, and under one master no two exclusive sections overlap.
 */
import type { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Hold, isLockError, type Lock, LockClient, type LockClientOptions } from "../../src/index.js";
import { failure, untilWaiting } from "../contract/helpers.js";
import { atLast, failOnUnhandledRejections } from "../faults/harness.js";
import {
  allKeys,
  keyState,
  ownConnections,
  PATIENCE,
  type RedisSentinel,
  type RedisServer,
  STEADY,
  startSentinel,
  until,
  untilGone,
} from "../support/index.js";
import { type Kind, SINGLE } from "../support/place/kinds.js";
import { Load } from "./load.js";
import { CALM, makeHasty } from "./sentinel-haste.js";

/** Much longer than a failover takes, so that a failure says what is missing, and not only that time ran out. */
const LONG = { timeout: 2 * PATIENCE };
const DB = 2;

/**
 * Only messages and the end of an outage wake waiters, and only the test's own holds are renewed. Calls outlast a
 * server that stands still for four seconds, but hardly a failover.
 */
const FAR: LockClientOptions = { commandTimeout: 6_000, pollCap: 60_000, watchdogTimeout: 60_000 };
/**
 * The last writes of the old master may not have reached the new one. Then a lock stays locked there until its lease is
 * over, and a fair waiter keeps its place for three times `pollCap`.
 */
const BUSY: LockClientOptions = { pollCap: 1_000, watchdogTimeout: 3_000 };
/** A lease that outlives a failover on a busy machine, and is renewed soon after it. */
const KEPT: LockClientOptions = { pollCap: 60_000, watchdogTimeout: 3 * STEADY };

/** Ends the time of a master; resolves when it no longer serves. */
type End = (all: RedisSentinel, master: RedisServer) => Promise<unknown>;

const WAYS: [how: string, end: End][] = [
  ["is killed", kill],
  ["hands over", (all) => all.failover()],
  // A silent master is left after `commandTimeout`.
  ["hangs", hang],
];

async function kill(all: RedisSentinel, master: RedisServer): Promise<void> {
  await makeHasty(all);
  await master.kill();
}

async function hang(all: RedisSentinel, master: RedisServer): Promise<void> {
  await makeHasty(all);
  master.pause();
}

failOnUnhandledRejections();

describe.concurrent.each(WAYS)("the master %s", (_, end) => {
  let all: RedisSentinel;
  const connections: { disconnect(): void }[] = [];
  const clients: LockClient[] = [];

  beforeAll(async () => {
    all = await startSentinel({ password: "se:cret", sentinelPassword: "watch", downAfter: CALM });
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close({ timeout: 0 })));
    for (const connection of connections) connection.disconnect();
    await all?.stop();
  });

  function connect(redis: Redis, settings: LockClientOptions) {
    connections.push(redis);
    const own = ownConnections(redis);
    const client = new LockClient(redis, settings);
    clients.push(client);
    return { client, redis, own };
  }
  const byIoredis6 = (settings: LockClientOptions) => connect(all.connect({ db: DB }), settings);
  const byIoredis5 = (settings: LockClientOptions) => {
    const redis = new Redis5({ ...all.clientOptions, db: DB } as object);
    redis.on("error", () => {});
    return connect(redis as unknown as Redis, settings);
  };

  test(
    "holds are kept, waiters resume, and nothing overlaps within one reign [F27]",
    async () => {
      const [ours, theirs, keeper] = [byIoredis6(FAR), byIoredis5(FAR), byIoredis6(KEPT)];
      const workers = [byIoredis6(BUSY), byIoredis5(BUSY)];
      for (const { client } of [ours, theirs, keeper, ...workers]) await atLast(() => client.ready());
      const kept = await Promise.all(SINGLE.map((kind) => keep(kind, keeper.client)));
      const handed = await Promise.all(SINGLE.map((kind) => handOver(kind, ours.client, theirs.client)));
      const leaving = await leaver(byIoredis6(FAR).client, handed);
      const load = new Load();
      const worked = SINGLE.map((kind) => `work ${kind.name}`);
      for (const kind of SINGLE)
        load.man(
          kind,
          workers.map(({ client }) => client),
          `work ${kind.name}`,
        );
      const goesOn = () => Promise.all(worked.map((name) => load.goesOn(name, 3, LONG.timeout)));
      const before = await all.master();
      await goesOn();
      const within = load.violations();
      for (const { redis } of [ours, theirs, keeper]) expect(await redis.wait(1, PATIENCE)).toBe(1);

      // A worker's connection, because an idle connection may not notice.
      const outage = new Promise((resolve) => workers[0]?.own[0]?.once("close", resolve));
      const over = end(all, before);
      await outage;
      // The holds are given back while there is no master; an unlock without an answer in time goes on by itself.
      const released = handed.map(({ hold }) => hold.unlock().then(() => "done", codeOf));
      await leaving();
      const after = await all.successor(before);
      await over;

      await Promise.all(handed.map(({ done }) => done));
      for (const outcome of await Promise.all(released)) expect(["done", "UNAVAILABLE"]).toContain(outcome);
      await goesOn();
      // A section of the old master, whose grant the new one may not have, may overlap one of the new master.
      const across = load.violations();
      await load.stop(LONG.timeout);
      expect([within, load.violations(), load.strange]).toEqual([[], across, []]);

      const redis = after.connect({ db: DB });
      await Promise.all(kept.map((each) => renewedBy(redis, each)));
      for (const { kind, lock, hold } of kept) {
        const rival = kind.rival.make([theirs.client], lock.name);
        expect(await atLast(() => rival.tryLock())).toBeNull();
        await passOn(lock, hold, rival, theirs.client);
      }

      await closeAll(after);
    },
    12 * PATIENCE,
  );

  /** No subscription is left on the server, and no key without a TTL. */
  async function closeAll(master: RedisServer): Promise<void> {
    await Promise.all(clients.map((client) => client.close()));
    await until("nobody subscribes but the sentinels", async () => {
      const list = String(await master.call("CLIENT", "LIST", "TYPE", "PUBSUB"));
      return list.split("\n").every((line) => line === "" || line.includes("name=sentinel-"));
    });
    const redis = master.connect({ db: DB });
    for (const [key, { ttl }] of await allKeys(redis)) {
      // A fair queue has no TTL while it has places, and the failover may have lost the removal of one.
      const endless = /^redisson_lock_(token|queue|timeout):/.test(key);
      if (!endless) expect([key, ttl]).not.toEqual([key, -1]);
    }
    for (const { name } of SINGLE)
      for (const use of ["kept", "handed", "work"]) await untilGone(redis, `${use} ${name}`);
  }
});

interface Kept {
  readonly kind: Kind;
  readonly lock: Lock;
  readonly hold: Hold;
  /** Returns how often the hold was renewed. */
  readonly renewals: () => number;
}

/** Takes a hold that the watchdog keeps. */
async function keep(kind: Kind, client: LockClient): Promise<Kept> {
  const lock = kind.make([client], `kept ${kind.name}`);
  let renewals = 0;
  client.on("renewed", ({ lockName }) => {
    if (lockName === lock.name) renewals++;
  });
  return { kind, lock, hold: await atLast(() => lock.lock()), renewals: () => renewals };
}

/** A hold of our client, and a call of theirs that waits for it. */
async function handOver(kind: Kind, ours: LockClient, theirs: LockClient) {
  const name = `handed ${kind.name}`;
  const hold = await atLast(() => kind.make([ours], name).lock());
  const waits = new Promise<void>((resolve) => {
    theirs.on("waiting", ({ lockName }) => lockName === name && resolve());
  });
  const waiter = kind.rival.make([theirs], name).lock();
  const done = waiter.then(async (granted) => {
    expect(granted.isHeld).toBe(true);
    await granted.unlock();
  });
  await waits;
  return { kind, hold, done };
}

/** A client that holds and waits for every kind; it is closed while there is no master. */
async function leaver(client: LockClient, busy: readonly { hold: Hold; kind: Kind }[]) {
  const holds = await Promise.all(
    SINGLE.map((kind) => atLast(() => kind.make([client], `left ${kind.name}`).lock())),
  );
  const waits = busy.map(({ kind, hold }) => failure(kind.rival.make([client], hold.lockName).lock()));
  return async () => {
    await client.close({ timeout: 0 });
    for (const error of await Promise.all(waits)) expect(error).toMatchObject({ code: "CLIENT_CLOSED" });
    for (const hold of holds) expect([hold.isHeld, hold.signal.aborted]).toEqual([false, true]);
  };
}

/** The new master renews the hold, and has it. */
async function renewedBy(master: Redis, { kind, hold, renewals }: Kept): Promise<void> {
  const seen = renewals();
  await until(`${kind.name} is renewed by the new master`, () => renewals() > seen, LONG);
  expect(hold.isHeld).toBe(true);
  const state = await keyState(master, hold.lockName);
  expect(state.value).toEqual(kind.fields(hold.ownerId, 1));
  expect(state.ttl).toBeGreaterThan(0);
}

/** On the new master a message wakes a waiter, as usual. */
async function passOn(lock: Lock, hold: Hold, rival: Lock, theirs: LockClient): Promise<void> {
  const { done } = await untilWaiting(theirs, () => rival.lock());
  await atLast(() => hold.unlock());
  const next = await done;
  await atLast(() => next.unlock());
  expect(await atLast(() => lock.isLocked())).toBe(false);
}

const codeOf = (error: unknown): string => (isLockError(error) ? error.code : String(error));
