/** On a cluster: lost connections of nodes, the question about sharded pub/sub, and what a call without an answer says. */
import { Cluster } from "ioredis";
import { describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import {
  forTest,
  freePort,
  isSharded,
  needSharded,
  ownConnections,
  startClusterProxy,
  until,
} from "../support/index.js";
import { failsSoon, Stage, soon, useStage, watch } from "./harness.js";
import { expectNothingLeft } from "./remains.js";

const NEVER = 60_000;
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

test("where no node of a cluster answers, the cause names one [§6 cause] [B311]", async () => {
  const port = await freePort();
  const nodes = new Cluster([{ host: "127.0.0.1", port }], { lazyConnect: true });
  nodes.on("error", () => {});
  const lock = forTest(new LockClient(nodes, { commandTimeout: 1_000 })).getLock("job");
  for (let i = 0; i < 2; i++)
    expect(await failure(lock.lock())).toMatchObject({
      code: "UNAVAILABLE",
      cause: { message: expect.stringContaining(`127.0.0.1:${port}`) },
    });
});

test.for([
  ["ERR backend is restarting", undefined],
  ["NOAUTH Authentication required.", "UNSUPPORTED"],
])(
  "a first call whose question about sharded pub/sub is answered with %s is asked again, or the next call asks [B192]",
  async ([answer, code], context) => {
    await needSharded(true, context);
    await using bed = await stage.bed({ topology, client: { shardedPubSub: false } });
    const own = ownConnections(bed.redis);
    // A client that has not asked yet.
    await using client = new LockClient(bed.redis);
    const redis = own[0] as unknown as { call(...args: string[]): Promise<unknown> };
    const call = redis.call.bind(redis);
    let asked = 0;
    redis.call = (...args) =>
      args[0] === "PUBSUB" && asked++ === 0
        ? Promise.reject(Object.assign(new Error(answer), { name: "ReplyError" }))
        : call(...args);
    const lock = client.getLock(bed.name);
    const first = watch(lock.lock());
    if (code) expect(await failsSoon(first)).toMatchObject({ code, cause: { message: answer } });
    else await (await soon(first)).unlock();
    const theirs = await bed.lock.lock();
    const second = watch(lock.lock());
    await until("it listens", async () => (await listening(stage, bed.name, true)).length > 0);
    expect(asked).toBe(2);
    await theirs.unlock();
    await (await soon(second)).unlock();
  },
);

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

test("the trouble of a node that has answered since is not the cause of another node's silence [B255]", async () => {
  await using proxies = await startClusterProxy(stage.cluster);
  const client = forTest(new LockClient(proxies.connect(), { commandTimeout: 1_000, presence: false }));
  const [once, now] = [client.getLock("{a}"), client.getLock("{b}")];
  const [first, second] = [await proxies.proxyFor("{a}"), await proxies.proxyFor("{b}")];
  expect(first).not.toBe(second);
  await Promise.all([once, now].map((lock) => lock.run(() => {})));

  first.refuse();
  expect(await failsSoon(watch(once.lock()))).toMatchObject({ code: "UNAVAILABLE" });
  first.restore();
  await until("it answers again", () => once.run(() => true).catch(() => false));

  second.blackhole();
  const silent = await failsSoon(watch(now.lock()));
  expect(silent).toMatchObject({ code: "UNAVAILABLE" });
  expect(String((silent as Error).cause)).not.toContain(`:${first.port}`);
  second.restore();
});
