import { Redis as Redis5 } from "ioredis5";
import { expect, test } from "vitest";
import { redisCall, startSentinel, until } from "./index.js";

test("clients come to the master by the sentinels, with passwords and a database", async () => {
  await using all = await startSentinel({ password: "se:cret", sentinelPassword: "watch", downAfter: 5_000 });
  const [master, replica] = all.servers;
  expect(await all.master()).toBe(master);
  const six = all.connect({ db: 2 });
  const five = new Redis5({ ...all.clientOptions, db: 2 } as object);
  await six.set("k", "v");
  expect(await five.get("k")).toBe("v");
  five.disconnect();
  expect(await master?.call("DBSIZE")).toBe(0); // it is in the other database
  expect(await six.info("replication")).toContain("role:master");
  expect((await replica?.info("replication"))?.get("master_port")).toBe(String(master?.port));
  const [sentinel] = all.sentinels;
  const { host = "", port = 0 } = sentinel ?? {};
  await expect(redisCall({ host, port }, ["PING"])).rejects.toThrow("NOAUTH");
});

test("a replica takes over by request, and from a killed master, and the dead one comes back", async () => {
  await using all = await startSentinel();
  const [first, [second]] = [await all.master(), await all.replicas()];
  if (second === undefined) throw new Error("no replica");
  const client = all.connect();
  await client.set("k", "v");
  await client.wait(1, 5_000);
  expect(await all.failover()).toBe(second);
  expect(await client.get("k")).toBe("v");
  await until("the first one follows", async () => {
    return (await first.info("replication")).get("master_link_status") === "up";
  });
  await all.inStep();
  expect(await all.killMaster()).toBe(first);
  expect(await client.get("k")).toBe("v");
  await all.revive(second);
  await until("it has the key again", async () => (await second.call("GET", "k")) === "v");
});

test("what the master does is lost on a replica that is cut off, and only on that", async () => {
  await using all = await startSentinel();
  const client = all.connect();
  const [master, [replica]] = [await all.master(), await all.replicas()];
  if (replica === undefined) throw new Error("no replica");
  await client.set("before", "v");
  await client.wait(1, 5_000);
  await all.cutOff(replica);
  await client.set("after", "v");
  await master.kill();
  replica.resume();
  expect(await all.successor(master)).toBe(replica);
  expect(await client.mget("before", "after")).toEqual(["v", null]);
});

test("nothing is left behind", async () => {
  const all = await startSentinel();
  const pids = [...all.servers, ...all.sentinels].map(({ pid }) => pid);
  await all.stop();
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
});
