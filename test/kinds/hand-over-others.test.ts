/**
 * A lock that goes from hand to hand inside one process does not stay there: a waiter elsewhere, whichever it is, gets
 * it within a bounded number of hand-overs; and of several processes each gets its share.
 */
import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { lockChannel, readWriteChannel } from "../../src/base/names.js";
import type { Lock } from "../../src/index.js";
import type { Kind } from "../contract/kinds.js";
import { bundledWorker } from "../faults/build-worker.js";
import { failOnUnhandledRejections, Stage, script } from "../faults/harness.js";
import { PASS, PASSED } from "../faults/passing.js";
import { forFile, needSharded, startWorker, until } from "../support/index.js";
import type { Loops } from "./hand-over-worker.js";
import { NEVER, Scene } from "./helpers.js";

const TASKS = 20;
/** A bound for the hand-overs of one turn: the policy makes four, or as many as fit into SHORTEST_TIME. */
const RUN = 16;
/** Milliseconds before which others are never asked: a fast server does more than RUN hand-overs in that time. */
const SHORTEST_TIME = 8;
/** How often a waiter that is offered the lock may lose the race for it. */
const RACES = 3;
/** The same on a cluster, where a message takes longer because it goes from node to node. */
const RACES_ON_CLUSTER = 10;
const REPEATS = 40;
/** Milliseconds after which a crowd that hears no message looks for itself. */
const DEAF = 100;
/** Milliseconds within which the lock is released to all processes more than once. */
const POLLING = 15_000;

const workerFile = bundledWorker("../kinds/hand-over-worker.ts");

failOnUnhandledRejections();
const stage = await forFile(Stage.start(["standalone", "cluster"]));

/** Tasks of one process that take a lock and give it back again and again. */
class Crowd implements AsyncDisposable {
  grants = 0;
  #over = false;
  readonly #tasks: Promise<void>[];

  constructor(lock: Lock, tasks: number = TASKS) {
    this.#tasks = Array.from({ length: tasks }, () => this.#loop(lock));
  }

  async #loop(lock: Lock): Promise<void> {
    while (!this.#over) {
      const hold = await lock.lock();
      this.grants++;
      await hold.unlock();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true;
    await Promise.all(this.#tasks);
  }
}

/** What the crowd did while another client waited for the lock. */
interface Meanwhile {
  /** How often the crowd had the lock. */
  readonly grants: number;
  /** Milliseconds. */
  readonly time: number;
  /** Chances that the other client heard of: on a busy machine it loses more races. */
  readonly chances: number;
}

/** Several visits of another client, one after the other; `visit` resolves with the chances that it heard of. */
async function takeTurns(crowd: Crowd, repeats: number, visit: () => Promise<number>): Promise<Meanwhile[]> {
  const meanwhile: Meanwhile[] = [];
  for (let i = 0; i < repeats; i++) {
    const before = crowd.grants;
    const begun = performance.now();
    const chances = await visit();
    const grants = crowd.grants - before;
    meanwhile.push({ grants, time: performance.now() - begun, chances });
    await until("the crowd has it again", () => crowd.grants > before + grants + 5, { every: 1 });
  }
  return meanwhile;
}

/**
 * Most visits waited no longer than `races` chances to get the lock take. No visit waited ten times longer than that, plus
 * the chances that it heard of: on a busy machine a single one can lose many races.
 */
function expectTurns(what: string, meanwhile: readonly Meanwhile[], races: number): void {
  const sorted = meanwhile.map(({ grants }) => grants).sort((a, b) => a - b);
  console.info(`${what}: median ${sorted[sorted.length >> 1]}, most ${sorted.at(-1)}`);
  const overdue = (most: (one: Meanwhile) => number) =>
    meanwhile.filter((one) => {
      const { grants, time } = one;
      return grants > most(one) * Math.max(RUN + 1, (grants / time) * SHORTEST_TIME * 2);
    });
  expect(overdue(({ chances }) => chances + 10 * races)).toEqual([]);
  expect(overdue(() => races).length).toBeLessThan(meanwhile.length / 2);
}

/**
 * Takes the lock and gives it back. Returns 0, because the messages that a lock of ours hears cannot be counted here.
 */
async function visit(lock: Lock): Promise<number> {
  const hold = await lock.lock();
  await hold.unlock();
  return 0;
}

/** Takes the lock if it is free, as Redisson's scripts do; otherwise returns its TTL. */
const TRY = `
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], unpack(ARGV, 2))
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
return redis.call('PTTL', KEYS[1])`;
const GIVE_BACK = `
redis.call('DEL', KEYS[1])
return redis.call('PUBLISH', KEYS[2], '0')`;

/** Waits as Redisson does: subscribes, and tries after each message. */
class Java implements AsyncDisposable {
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #scene: Scene;
  readonly #kind: Kind;
  readonly #channel: string;
  #messages = 0;

  private constructor(scene: Scene, kind: Kind) {
    this.#scene = scene;
    this.#kind = kind;
    this.#channel = kind.kind === "readwrite" ? readWriteChannel(scene.name) : lockChannel(scene.name);
    this.#redis = stage.server.connect();
    this.#subscriber = stage.server.connect();
    this.#subscriber.on("message", () => {
      this.#messages++;
    });
  }

  static async on(scene: Scene, kind: Kind): Promise<Java> {
    const java = new Java(scene, kind);
    await java.#redis.ping();
    return java;
  }

  /** Takes the lock and gives it back. Each release that it hears of is a chance. */
  async visit(): Promise<number> {
    const before = this.#messages;
    await this.#subscriber.subscribe(this.#channel);
    const fields = Object.entries(this.#kind.fields("b0e5b1a2-0000-4000-8000-000000000000:1", 1)).flat();
    for (;;) {
      const heard = this.#messages;
      const ttl = await this.#redis.eval(TRY, 1, this.#scene.name, 10_000, ...fields);
      if (ttl === null) break;
      await until("a message comes", () => this.#messages > heard, { every: 0, timeout: Number(ttl) });
    }
    const chances = this.#messages - before;
    await this.#subscriber.unsubscribe(this.#channel);
    await this.#redis.eval(GIVE_BACK, 2, this.#scene.name, this.#channel);
    return chances;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#redis.disconnect();
    this.#subscriber.disconnect();
  }
}

describe.each(PASSED.map((kind) => [kind.name, kind] as const))("%s: a crowd in one process", (_, kind) => {
  test("a waiter of another client has it within a bounded number of hand-overs, every time", async () => {
    await using scene = await Scene.of(stage, {}, { pollCap: NEVER });
    await using crowd = new Crowd(kind.make(scene.client(0), scene.name));
    const lock = kind.make(scene.client(1), scene.name);
    const meanwhile = await takeTurns(crowd, REPEATS, () => visit(lock));
    expectTurns(kind.name, meanwhile, RACES);
  });

  test("a waiter of Redisson's kind as well", async () => {
    await using scene = await Scene.of(stage, {});
    await using crowd = new Crowd(kind.make(scene.client(0), scene.name));
    await using java = await Java.on(scene, kind);
    const meanwhile = await takeTurns(crowd, REPEATS, () => java.visit());
    expectTurns(`${kind.name}, Redisson's kind`, meanwhile, RACES);
  });

  test("a waiter of another client has it as soon when the crowd's own subscription is never confirmed [B136]", async () => {
    await using bed = await stage.bed({ kind, split: true, client: { pollCap: DEAF } });
    await using other = await stage.bed({ kind, client: { pollCap: NEVER } });
    bed.subscribing.blackhole();
    await using crowd = new Crowd(bed.lock);
    const lock = other.make(bed.name);
    const meanwhile = await takeTurns(crowd, REPEATS / 4, () => visit(lock));
    expectTurns(`${kind.name}, not subscribed`, meanwhile, RACES);
  });

  test("another process that only polls gets the lock now and then", async () => {
    await using scene = await Scene.of(stage, {}, {});
    await using crowd = new Crowd(kind.make(scene.client(0), scene.name));
    const lock = kind.make(scene.client(1), scene.name);
    const end = performance.now() + POLLING;
    let taken = 0;
    // Two early tries may be lucky: the crowd has to have had a run of its own, too.
    while ((taken < 2 || crowd.grants <= RUN) && performance.now() < end) {
      const hold = await lock.tryLock();
      if (hold) taken++;
      await hold?.unlock();
    }
    expect(taken).toBeGreaterThanOrEqual(2);
    expect(crowd.grants).toBeGreaterThan(RUN);
  });
});

/** A cluster with classic pub/sub does not say how many clients listen. */
describe.each([
  ["sharded", true],
  ["classic", false],
])("on a cluster with %s pub/sub", (_name, shardedPubSub) => {
  beforeEach((context) => needSharded(shardedPubSub, context));

  test.each(PASSED.map((kind) => [kind.name, kind] as const))(
    "%s: others get their turn",
    async (_kind, kind) => {
      const client = { shardedPubSub };
      await using bed = await stage.bed({ topology: "cluster", kind, client });
      await using other = await stage.bed({
        topology: "cluster",
        kind,
        client: { ...client, pollCap: NEVER },
      });
      await using crowd = new Crowd(bed.lock);
      const lock = other.make(bed.name);
      const meanwhile = await takeTurns(crowd, REPEATS / 2, () => visit(lock));
      expectTurns(`${kind.name}, sharded ${shardedPubSub}`, meanwhile, RACES_ON_CLUSTER);
      expect(bed.proxy.count(PASS)).toBeGreaterThan(0);
    },
  );

  test("with nobody elsewhere the lock is given up for others only if they cannot be counted", async () => {
    await using bed = await stage.bed({ topology: "cluster", client: { shardedPubSub } });
    {
      await using crowd = new Crowd(bed.lock);
      await until("it went round", () => crowd.grants > 200);
      bed.proxy.clear();
      const before = crowd.grants;
      const begun = performance.now();
      await until("it went round again", () => crowd.grants > before + 400);
      const runs = Math.min(400 / RUN, (performance.now() - begun) / SHORTEST_TIME);
      const released = bed.proxy.count(script("release"));
      // If listeners are counted, the lock is released only after a second, or to a call that is just trying.
      if (shardedPubSub) expect(released).toBeLessThan(bed.proxy.count(PASS) / 8);
      // Otherwise the process releases the lock after each run, and waits a while for listeners that may be there.
      else expect(released).toBeGreaterThanOrEqual(runs / 4);
    }
  });
});

/** Jain's fairness index: 1 if all have the same share, 1/n if one of n has everything (Jain, Chiu and Hawe 1984). */
function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, each) => total + each, 0);
  return sum ** 2 / (shares.length * shares.reduce((total, each) => total + each ** 2, 0));
}

/** Processes that take one lock in a loop, each as often as it can, until all together have taken it that often. */
async function compete(tasks: number, takes: number): Promise<number[][]> {
  const name = `compete-${tasks}`;
  const redis = stage.server.connect();
  const workers = await Promise.all(Array.from({ length: 4 }, () => startWorker(workerFile())));
  try {
    const start: Loops = { port: stage.server.port, name, tasks, takes };
    await Promise.all(workers.map((worker) => worker.request("start", start)));
    const counts = await Promise.all(workers.map((worker) => worker.request<number[]>("loop")));
    // Each task has read and written this under the lock: no update is lost.
    const sum = counts.flat().reduce((total, each) => total + each, 0);
    expect(Number(await redis.get(`${name}-count`))).toBe(sum);
    expect(sum).toBeGreaterThanOrEqual(takes);
    await Promise.all(workers.map((worker) => worker.request("close")));
    return counts;
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
    redis.disconnect();
  }
}

test("4 processes of 8 tasks each have the lock equally often", async () => {
  const counts = await compete(8, 3_000);
  const processes = jain(counts.map((each) => each.reduce((total, one) => total + one, 0)));
  console.info(
    `Jain's index: ${processes.toFixed(4)} over processes, ${jain(counts.flat()).toFixed(4)} over tasks`,
  );
  expect(processes).toBeGreaterThanOrEqual(0.9);
});

test("4 processes of one task each lose no update", async () => {
  const counts = await compete(1, 1_000);
  console.info(`Jain's index with one task each: ${jain(counts.flat()).toFixed(4)}`);
});
