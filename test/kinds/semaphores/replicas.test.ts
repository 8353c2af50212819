/** The option `replicas`: a permit that too few replicas acknowledge is given back, and the call rejects. */
import { afterAll, expect, test } from "vitest";
import { LockClient } from "../../../src/index.js";
import { forFile, startProxy, startRedis, until } from "../../support/index.js";
import { timeoutsOf } from "./helpers.js";

const master = await forFile(startRedis());
const link = await forFile(startProxy(master, { record: false }));
const replica = await forFile(startRedis({ replicaOf: link }));
const client = await forFile(new LockClient(master.connect(), { replicas: 1, replicasTimeout: 400 }));
await until("the replica keeps up", () => client.ready().then(() => true));
afterAll(() => link.restore());

const short = { code: "REPLICAS", acknowledged: 0, required: 1 };

test("a permit that is granted is on the replica", async () => {
  const redis = master.connect();
  const copy = replica.connect();
  await redis.set("semaphore", 5);
  await until("an acquire is acknowledged", () =>
    client
      .getSemaphore("semaphore")
      .acquire(2)
      .then(() => true),
  );
  expect(await copy.get("semaphore")).toBe(await redis.get("semaphore"));
  await redis.set("permits", 5);
  const id = await until("an acquire is acknowledged", () =>
    client.getPermitExpirableSemaphore("permits").acquire(),
  );
  expect(await copy.zscore(timeoutsOf("permits"), Buffer.from(id, "hex"))).not.toBeNull();
});

test("a permit that no replica has is given back, and the call rejects", async () => {
  const redis = master.connect();
  await redis.flushall();
  await redis.mset("semaphore", 5, "permits", 5);
  link.stall();
  const semaphore = client.getSemaphore("semaphore");
  const permits = client.getPermitExpirableSemaphore("permits");
  await expect(semaphore.acquire(2)).rejects.toMatchObject({ ...short, lockName: "semaphore" });
  await expect(semaphore.tryAcquire(2)).rejects.toMatchObject(short);
  await expect(semaphore.run(() => {})).rejects.toMatchObject(short);
  await expect(permits.acquire()).rejects.toMatchObject({ ...short, lockName: "permits" });
  await expect(permits.tryAcquire(0, 60_000)).rejects.toMatchObject(short);
  expect(await semaphore.tryAcquire(9)).toBe(false); // a refused call needs no replicas
  await until("all is given back", async () => {
    return String(await redis.mget("semaphore", "permits")) === "5,5";
  });
  expect(await redis.zcard(timeoutsOf("permits"))).toBe(0);
  link.restore();
});
