/** Where a client's subscriber connects if a sentinel has not yet heard of the failover. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, type RedisServer, startSentinel, UNHURRIED, until } from "../support/index.js";
import { CALM } from "./sentinel-haste.js";

failOnUnhandledRejections();
const all = await forFile(startSentinel({ password: "se:cret", downAfter: CALM }));

/** The number of subscribed clients there, without the sentinels. */
async function subscribers(server: RedisServer): Promise<number> {
  const list = String(await server.call("CLIENT", "LIST", "TYPE", "PUBSUB"));
  return list.split("\n").filter((line) => line !== "" && !line.includes("name=sentinel-")).length;
}

test("a subscriber that was sent to a replica goes on to the master [B18]", async () => {
  const [master, [replica]] = [await all.master(), await all.replicas()];
  if (replica === undefined) throw new Error("no replica");
  let stale = 0;
  // Like a sentinel that is behind, this names a server that is now a replica. It is called for other addresses, too.
  const natMap = (address: string) =>
    address.endsWith(`:${master.port}`) && stale-- > 0 ? { host: replica.host, port: replica.port } : null;
  const client = new LockClient(all.connect({ natMap: natMap }), { ...UNHURRIED, pollCap: 60_000 });
  const other = new LockClient(all.connect(), UNHURRIED);
  await client.getLock("order").isLocked();
  const hold = await other.getLock("order").lock();
  stale = 1;
  const { done } = await untilWaiting(client, () => client.getLock("order").lock());
  await until("it subscribes at the master", async () => (await subscribers(master)) === 1);
  expect(await subscribers(replica)).toBe(0);
  // From now on a subscriber of the old replica would miss the master's messages.
  await replica.call("REPLICAOF", "NO", "ONE");
  await hold.unlock();
  await (await done).unlock();
  await Promise.all([client, other].map((each) => each.close()));
});

test("a subscriber comes back though the user's options give up when no sentinel can be reached [B74]", async () => {
  const [sentinel] = all.sentinels;
  const master = await all.master();
  let refused = 0;
  let isShut = false;
  /** The only sentinel that the client knows. */
  const gate = createServer((socket) => {
    socket.on("error", () => {});
    if (isShut) {
      refused++;
      socket.resetAndDestroy();
      return;
    }
    const through = connect(sentinel?.port ?? 0, sentinel?.host).on("error", () => {});
    socket.pipe(through).pipe(socket);
  });
  gate.listen(0, "127.0.0.1");
  await once(gate, "listening");
  const { address: host, port } = gate.address() as AddressInfo;
  const user = all.connect({
    sentinels: [{ host, port }],
    updateSentinels: false,
    sentinelRetryStrategy: (times) => (times > 3 ? null : 10),
  });
  const client = new LockClient(user, { ...UNHURRIED, pollCap: 60_000 });
  const other = new LockClient(all.connect(), UNHURRIED);
  const hold = await other.getLock("stock").lock();
  const { done } = await untilWaiting(client, () => client.getLock("stock").lock());
  await until("it subscribes", async () => (await subscribers(master)) === 1);
  isShut = true;
  const list = String(await master.call("CLIENT", "LIST", "TYPE", "PUBSUB"));
  const [own = ""] = list.split("\n").filter((line) => line !== "" && !line.includes("name=sentinel-"));
  await master.call("CLIENT", "KILL", "ID", /^id=(\d+)/.exec(own)?.[1] ?? "");
  await until("it has asked the sentinel in vain", () => refused > 2);
  isShut = false;
  await until("it subscribes again", async () => (await subscribers(master)) === 1);
  await hold.unlock();
  await (await done).unlock();
  expect(user.status).toBe("ready");
  await Promise.all([client, other].map((each) => each.close()));
  user.disconnect();
  gate.close();
});
