/** Wake-ups on a cluster: sharded and classic pub/sub, lost connections of nodes, and a slot that moves. */
import { describe, expect, test } from "vitest";
import { isSharded, needSharded, ownConnections, type UserRedis, until } from "../support/index.js";
import { failsSoon, Stage, soon, useStage, watch } from "./harness.js";
import { expectNothingLeft } from "./remains.js";

const NEVER = 60_000;
const SOON = 6_000;
const topology = "cluster";

const stage = await useStage("cluster");

/** The nodes with a listener of the lock's channel, sharded or classic. */
async function listening(own: Stage, name: string, sharded: boolean): Promise<number[]> {
  if (sharded && !(await isSharded(sharded))) return [];
  const command = sharded ? "SHARDCHANNELS" : "CHANNELS";
  const found = await Promise.all(
    own.cluster.nodes.map(async (node) => {
      const channels = await node.call("PUBSUB", command, `*${name}*`);
      return Array.isArray(channels) && channels.length > 0 ? [node.port] : [];
    }),
  );
  return found.flat();
}

describe.concurrent("a waiter of another client is woken", () => {
  test.for([true, false])(
    "for locks all over the slots (shardedPubSub %s)",
    async (shardedPubSub, context) => {
      await needSharded(shardedPubSub, context);
      const client = { shardedPubSub, pollCap: NEVER };
      await using other = await stage.bed({ topology, client });
      await using bed = await stage.bed({ topology, client });
      const names = Array.from({ length: 60 }, (_, i) => `${bed.name}${i}`);
      const masters = await Promise.all(
        names.map(async (name) => (await stage.cluster.masterFor(name)).port),
      );
      expect(new Set(masters).size).toBe(3);
      const theirs = await Promise.all(names.map((name) => other.client.getLock(name).lock()));
      let waits = 0;
      bed.client.on("waiting", () => waits++);
      const waiting = names.map((name) => watch(bed.client.getLock(name).lock()));
      await until("all wait", () => waits === names.length);
      await Promise.all(theirs.map((hold) => hold.unlock()));
      await until("all have theirs", () => waiting.every(({ state }) => state !== "pending"), {
        timeout: SOON,
      });
      expect(waiting.map(({ error }) => error)).toEqual(names.map(() => undefined));
      await Promise.all(waiting.map(({ value }) => value?.unlock()));
      const nobodyListens = async () => (await listening(stage, bed.name, shardedPubSub)).length === 0;
      await until("nobody listens", nobodyListens);
      await expectNothingLeft(bed, 20_000);
    },
  );
});

describe.concurrent("the first call of a client, which has to ask the server about sharded pub/sub,", () => {
  /** A client that has not asked yet whether the server has sharded pub/sub; its node answers PUBSUB after `ms`. */
  async function fresh(ms: number, commandTimeout = 3_000) {
    const bed = await stage.bed({ topology, client: { shardedPubSub: false } });
    const { LockClient } = await import("../../src/index.js");
    const own = ownConnections(bed.redis);
    const client = new LockClient(bed.redis, { commandTimeout });
    bed.delayAll(ms, ([verb]) => verb === "PUBSUB");
    const dispose = async (): Promise<void> => {
      await client.close({ timeout: 0 });
      await bed.dispose();
    };
    return {
      bed,
      own: own[0] as UserRedis,
      client,
      lock: client.getLock(bed.name),
      [Symbol.asyncDispose]: dispose,
    };
  }

  test.for([
    ["says nothing about the server: it rejects, and the next call asks again", "ERR backend is restarting"],
    ["asks for a password: it rejects, and the next call asks again", "NOAUTH Authentication required."],
  ])("is answered by an error that %s [B192]", async ([, answer = ""], context) => {
    await needSharded(true, context);
    await using it = await fresh(0);
    const redis = it.own as unknown as { call(...args: string[]): Promise<unknown> };
    const call = redis.call.bind(redis);
    let asked = 0;
    redis.call = (...args) =>
      args[0] === "PUBSUB" && asked++ === 0
        ? Promise.reject(Object.assign(new Error(answer), { name: "ReplyError" }))
        : call(...args);
    expect(await failsSoon(watch(it.lock.lock()))).toHaveProperty("cause.message", answer);
    const theirs = await it.bed.lock.lock();
    const second = watch(it.lock.lock());
    await until("it listens", async () => (await listening(stage, it.bed.name, true)).length > 0);
    expect(asked).toBe(2);
    await theirs.unlock();
    await (await soon(second)).unlock();
  });
});

describe.concurrent("subscribers", () => {
  test.for([true, false])(
    "killed on every node at the moment of the release: no wake-up is lost (shardedPubSub %s)",
    async (shardedPubSub, context) => {
      await needSharded(shardedPubSub, context);
      await using own = await Stage.start(["cluster"]);
      const client = { shardedPubSub, pollCap: NEVER };
      await using other = await own.bed({ topology, client });
      await using bed = await own.bed({ topology, client });
      for (let round = 0; round < 12; round++) {
        const name = `${bed.name}${round}`;
        const theirs = await other.client.getLock(name).lock();
        const waiting = watch(bed.client.getLock(name).lock());
        await until("it listens", async () => (await listening(own, name, shardedPubSub)).length === 1);
        expect(await listening(own, name, !shardedPubSub)).toEqual([]);
        const kills = own.cluster.nodes.map((node) => node.call("CLIENT", "KILL", "TYPE", "pubsub"));
        await Promise.all(round % 2 ? [...kills, theirs.unlock()] : [theirs.unlock(), ...kills]);
        await (await soon(waiting)).unlock();
      }
      await expectNothingLeft(bed, 20_000);
    },
  );
});
