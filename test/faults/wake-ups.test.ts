/** Waiters are woken by a message, lose no wake-up when connections break, and cost Redis nothing while they wait. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Hold, LockClientOptions } from "../../src/index.js";
import { type Matcher, SLACK, until } from "../support/index.js";
import { PLAIN } from "../support/place/kinds.js";
import {
  atLast,
  type Bed,
  failOnUnhandledRejections,
  manyAtOnce,
  NEVER,
  pause,
  SOON,
  Stage,
  script,
  soon,
  untilQuiet,
  type Watched,
  watch,
} from "./harness.js";
import { channels, listeners } from "./remains.js";

manyAtOnce();
failOnUnhandledRejections();

const tries = (bed: Bed): number => bed.proxy.count(script("take", bed.name));

/** Matches the waiter's SUBSCRIBE, not the one that `ready()` has sent. */
const subscribe =
  ({ name }: Bed): Matcher =>
  ([verb, channel]) =>
    verb === "SUBSCRIBE" && channel?.includes(name) === true;

/** Two clients; the first waits for the lock that the second holds. */
interface Pair extends AsyncDisposable {
  readonly bed: Bed;
  readonly theirs: Hold;
  readonly waiting: Watched<Hold>;
}

async function pair(stage: Stage, client: LockClientOptions = {}): Promise<Pair> {
  const bed = await stage.bed({ split: true, client: { pollCap: NEVER, ...client } });
  const other = await stage.bed();
  const theirs = await other.rival(bed.name).lock();
  const waiting = watch(bed.lock.lock());
  await untilParked(stage, bed);
  return {
    bed,
    theirs,
    waiting,
    [Symbol.asyncDispose]: async () => {
      await other.dispose();
      await bed.dispose();
    },
  };
}

/** The waiter was refused, has subscribed, and was refused once more. */
async function untilParked(stage: Stage, bed: Bed): Promise<void> {
  await until("it listens", async () => (await listeners(stage.server, bed.name)) >= 1);
  await until("it has asked again", () => tries(bed) >= 2);
  await bed.own.ping();
}

async function expectSoon(waiting: Watched<Hold>, within = SOON): Promise<void> {
  await (await soon(waiting, within)).unlock();
}

describe.concurrent("a waiter", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.start(["standalone"]);
  });
  afterAll(() => stage[Symbol.asyncDispose]());

  test("whose subscription is not confirmed yet when the lock is released tries again on the confirmation [F10]", async () => {
    for (let round = 0; round < 5; round++) {
      await using bed = await stage.bed({ split: true, client: { pollCap: NEVER } });
      await using other = await stage.bed();
      const theirs = await other.rival(bed.name).lock();
      bed.subscribing.delayReplies(100, subscribe(bed));
      const waiting = watch(bed.lock.lock());
      await until("it has been refused", () => tries(bed) === 1);
      await until("it subscribes", () => bed.subscribing.count(subscribe(bed)) === 1);
      await pause(5 * round);
      await theirs.unlock();
      await expectSoon(waiting);
    }
  });

  test("whose SUBSCRIBE is lost on the way subscribes again", async () => {
    await using bed = await stage.bed({ split: true, client: { pollCap: NEVER } });
    await using other = await stage.bed();
    const theirs = await other.rival(bed.name).lock();
    const fault = bed.subscribing.dropRequest(subscribe(bed));
    const waiting = watch(bed.lock.lock());
    await fault.done;
    await theirs.unlock();
    await expectSoon(waiting);
  });

  test("behind another of its process, which has announced nothing, hears a release by another process [B16]", async () => {
    await using bed = await stage.bed({ client: { pollCap: NEVER } });
    await using other = await stage.bed();
    const giver = await bed.lock.lock();
    const [first, next] = [watch(bed.lock.lock()), watch(bed.lock.lock())];
    await untilParked(stage, bed);
    await untilQuiet(() => tries(bed), 20);
    await stage.server.call("DEL", bed.name);
    await expect(giver.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    const hold = await soon(first);
    expect(await other.make(bed.name).forceUnlock()).toBe(true);
    await expectSoon(next);
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  test("behind a half-open subscriber connection is woken when the heartbeat has found it dead [F12]", async () => {
    await using it = await pair(stage);
    const subscriber = it.bed.subscribers[0];
    it.bed.subscribing.blackhole();
    const given = watch(
      new Promise<void>((resolve) => {
        subscriber?.once("close", () => {
          it.bed.subscribing.restore();
          resolve();
        });
      }),
    );
    await it.theirs.unlock();
    await until("the connection is given up", () => given.state === "resolved", {
      timeout: 16_000,
      every: 50,
    });
    await expectSoon(it.waiting);
  });

  test("behind a half-open subscriber connection is woken even if all waits are shorter than a beat [F12] [B242]", async () => {
    await using bed = await stage.bed({ split: true, client: { pollCap: NEVER } });
    await using other = await stage.bed();
    const theirs = await other.rival(bed.name).lock();
    expect(await atLast(() => bed.lock.tryLock(100))).toBeNull();
    const [subscriber] = bed.subscribers;
    bed.subscribing.blackhole();
    let isGivenUp = false;
    subscriber?.once("close", () => {
      isGivenUp = true;
      bed.subscribing.restore();
    });
    const tryOften = async () => {
      expect(await bed.lock.tryLock(300)).toBeNull();
      return isGivenUp;
    };
    await until("the connection is given up", tryOften, { timeout: 16_000 + SLACK, every: 50 });
    const waiting = watch(bed.lock.lock());
    await untilParked(stage, bed);
    await theirs.unlock();
    await expectSoon(waiting);
  });

  test("behind a subscriber connection that is accepted and never answered is woken when the heartbeat has found it [B135]", async () => {
    await using it = await pair(stage);
    const { subscribing, subscribers } = it.bed;
    const [subscriber] = subscribers;
    const accepted = watch(new Promise<void>((resolve) => void subscriber?.once("connect", resolve)));
    subscribing.blackhole();
    subscribing.cut();
    await until("it is connected again", () => accepted.state === "resolved");
    const given = watch(new Promise<void>((resolve) => void subscriber?.once("close", resolve)));
    await until("the connection is given up", () => given.state === "resolved", {
      timeout: 16_000 + SLACK,
      every: 50,
    });
    subscribing.restore();
    await it.theirs.unlock();
    await expectSoon(it.waiting);
  });

  test("is harmed by no forged message: junk, 1 MB, binary cost a try each at most [F14]", async () => {
    await using it = await pair(stage);
    const [channel = ""] = await channels(stage.server, it.bed.name);
    const forger = stage.server.connect();
    const before = tries(it.bed);
    const junk = ["", "0", "1", "unlocked", "-1", "{}", "null", Buffer.from([0, 255, 13, 10])];
    const messages = ["x".repeat(1_000_000), ...Array.from({ length: 10 }, () => junk).flat()];
    for (const message of messages) expect(await forger.publish(channel, message)).toBe(1);
    await it.bed.own.ping();
    expect(it.waiting.state).toBe("pending");
    expect(it.theirs.isHeld).toBe(true);
    expect(tries(it.bed) - before).toBeLessThanOrEqual(messages.length + 1);
    expect((await it.bed.keys())[it.bed.name]?.value).toEqual(PLAIN.fields(it.theirs.ownerId, 1));
    await it.theirs.unlock();
    await expectSoon(it.waiting);
  });
});

describe.concurrent("a server of its own", () => {
  const start = (): Promise<Stage> =>
    Stage.start(["standalone"], ["--appendonly", "yes", "--appendfsync", "always"]);

  test("subscribers killed at the moment of the release, again and again: every waiter resumes at once [F11]", async () => {
    await using stage = await start();
    await using other = await stage.bed();
    await using one = await stage.bed({ client: { pollCap: NEVER } });
    await using two = await stage.bed({ client: { pollCap: NEVER } });
    let slowest = 0;
    for (let round = 0; round < 50; round++) {
      const hold = await other.rival().lock();
      const waiting = [one, one, two].map((bed) => watch(bed.make(other.name).run(() => {})));
      await until("both clients listen", async () => (await listeners(stage.server, other.name)) >= 2, {
        every: 1,
      });
      const begun = performance.now();
      const kill = stage.server.call("CLIENT", "KILL", "TYPE", "pubsub");
      await Promise.all(round % 2 ? [kill, hold.unlock()] : [hold.unlock(), kill]);
      await until("every waiter has had it", () => waiting.every(({ state }) => state !== "pending"), {
        timeout: SOON,
        every: 1,
      });
      expect(waiting.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
      slowest = Math.max(slowest, performance.now() - begun);
    }
    expect(slowest).toBeLessThan(SOON);
  });

  test("a subscriber that the server drops for its output buffer subscribes again, and is woken [F13]", async () => {
    await using stage = await start();
    await stage.server.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 65536 32768 1");
    await using it = await pair(stage);
    const closed = watch(
      new Promise<void>((resolve) => it.bed.subscribers[0]?.once("close", () => resolve())),
    );
    const forger = stage.server.connect();
    const [channel = ""] = await channels(stage.server, it.bed.name);
    it.bed.subscribing.stall();
    await until("the server has dropped it", async () => {
      await forger.publish(channel, "x".repeat(1_000_000));
      return (await listeners(stage.server, it.bed.name)) === 0;
    });
    await it.theirs.unlock();
    it.bed.subscribing.restore();
    await until("the client has noticed", () => closed.state === "resolved");
    await expectSoon(it.waiting);
  });
});
