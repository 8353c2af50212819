/** The option `replicas`: a grant counts when that many replicas have it; otherwise it is undone and rejected. */
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LockClient, type LockClientOptions } from "../../../src/index.js";
import {
  type FaultProxy,
  keyState,
  named,
  PATIENCE,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
  UNHURRIED,
  until,
} from "../../support/index.js";

/** The properties of the REPLICAS error that are always the same. */
const short = (acknowledged: number, required: number) => ({ code: "REPLICAS", acknowledged, required });

describe("a master and a replica", () => {
  let master: RedisServer;
  let replica: RedisServer;
  let link: FaultProxy;
  let front: FaultProxy;
  let direct: Redis;
  let user: Redis;
  const clients: LockClient[] = [];

  beforeAll(async () => {
    master = await startRedis();
    link = await startProxy(master, { record: false });
    front = await startProxy(master);
    replica = await startRedis({ replicaOf: link });
    direct = master.connect();
    user = front.connect();
  });
  afterAll(async () => {
    await Promise.all([link?.stop(), front?.stop()]);
    await Promise.all([replica?.stop(), master?.stop()]);
  });
  beforeEach(() => direct.flushall());
  afterEach(async () => {
    link.restore();
    await Promise.all(clients.splice(0).map((client) => client.close({ timeout: 0 })));
    await inStep();
  });

  function connect(options: LockClientOptions = {}): LockClient {
    const client = new LockClient(user, { ...UNHURRIED, replicas: 1, replicasTimeout: 5_000, ...options });
    clients.push(client);
    return client;
  }

  /** Resolves when the replica has all data of the master. */
  async function inStep(): Promise<void> {
    await until("the replica is in step", async () => {
      await direct.set("step", "1", "PX", 1_000);
      return (await direct.wait(1, 1_000)) === 1;
    });
  }

  test("the connection for it is there again after it was lost [B73]", async () => {
    const options = { ...UNHURRIED, replicas: 1, replicasTimeout: 5_000 };
    await using client = new LockClient(master.connect({ retryStrategy: () => null }), options);
    await client.getLock("job").run(() => {});
    const list = String(await direct.call("CLIENT", "LIST"));
    const [line = ""] = list.split("\n").filter((each) => / cmd=wait /.test(each));
    expect(await direct.call("CLIENT", "KILL", "ID", /^id=(\d+)/.exec(line)?.[1] ?? "")).toBe(1);
    await client.getLock("job").run(() => {});
  });

  test("grants go to the database of the options, whatever the user has selected since, also after a reconnect [B198]", async () => {
    const given = front.connect({ db: 3 });
    await using client = new LockClient(given, { ...UNHURRIED, replicas: 1, replicasTimeout: 5_000 });
    const lock = client.getLock("job");
    const inDatabase = (db: number) => master.connect({ db }).exists("job");
    const expectIn3 = () =>
      lock.run(async () => expect([await inDatabase(0), await inDatabase(3)]).toEqual([0, 1]));
    await expectIn3();
    await given.select(0);
    await expectIn3();
    front.cut();
    await expectIn3();
  });

  test("when a grant is told, the replica has it: outermost, though its reply was lost, nested, and by tryLock [B201]", async () => {
    const lock = connect().getLock("job");
    const onReplica = replica.connect();
    await lock.run(() => {});
    const cut = front.cutReplyOf(named("EVAL"));
    const hold = await lock.lock();
    await cut.done;
    expect((await keyState(onReplica, "job")).value).toEqual({ [hold.ownerId]: "1" });
    const nested = await lock.lock({ owner: hold });
    expect((await keyState(onReplica, "job")).value).toEqual({ [hold.ownerId]: "2" });
    await nested.unlock();
    await hold.unlock();
    const tried = await lock.tryLock(0, 10_000);
    expect((await keyState(onReplica, "job")).value).toEqual({ [tried?.ownerId ?? ""]: "1" });
    await tried?.unlock();
  });

  test("the user's commandTimeout and socketTimeout, shorter than that for replicas, end no WAIT before its time [B148]", async () => {
    const hasty = master.connect({ commandTimeout: 1_000, socketTimeout: 1_000 });
    await using client = new LockClient(hasty, { ...UNHURRIED, replicas: 1, replicasTimeout: 2_500 });
    await client.ready();
    link.stall();
    await expect(client.getLock("job").lock()).rejects.toMatchObject(short(0, 1));
  });
});

test("on a cluster grants are acknowledged on every master, and undone where they are not", async () => {
  await using cluster = await startCluster({ masters: 3, replicas: 1 });
  const redis = cluster.connect();
  await using enough = new LockClient(cluster.connect(), { replicas: 1, replicasTimeout: 5_000 });
  await using tooMany = new LockClient(cluster.connect(), { replicas: 2, replicasTimeout: 1_500 });
  for (const name of ["a", "b", "c", "d"]) {
    const lock = enough.getLock(name);
    const hold = await lock.lock();
    const nested = await lock.lock({ owner: hold });
    expect((await keyState(redis, name)).value).toEqual({ [hold.ownerId]: "2" });
    await nested.unlock();
    await hold.unlock();
    expect(await redis.exists(name)).toBe(0);
    await expect(tooMany.getLock(name).lock()).rejects.toMatchObject(short(1, 2));
    expect(await redis.exists(name)).toBe(0);
  }
});

test("a master that is demoted while a grant waits for replicas is not the end of the call [B27]", async () => {
  await using demoted = await startRedis();
  await using other = await startRedis();
  const client = new LockClient(demoted.connect(), {
    replicas: 1,
    replicasTimeout: PATIENCE,
    commandTimeout: PATIENCE,
  });
  const asked = client.getLock("job").lock();
  await until("WAIT blocks", async () => (await demoted.info("clients")).get("blocked_clients") === "1");
  await demoted.call("REPLICAOF", other.host, other.port);
  await until("it is a replica", async () => (await demoted.info("replication")).get("role") === "slave");
  await demoted.call("REPLICAOF", "NO", "ONE");
  await using late = await startRedis({ replicaOf: demoted });
  expect(late.port).not.toBe(demoted.port);
  await (await asked).unlock();
  await client.close();
});
