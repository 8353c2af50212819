/** A password that is changed while clients live: what the library connects by itself uses the new one, too. */
import { expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { forFile, startRedis, UNHURRIED, until } from "../support/index.js";
import { failOnUnhandledRejections, freshName, soon, watch } from "./harness.js";

failOnUnhandledRejections();
const server = await forFile(startRedis());
await forFile(startRedis({ replicaOf: server }));
const admin = server.connect();

test.each([0, 1])(
  "the user's new password holds for all connections, with replicas: %i [B199]",
  async (replicas) => {
    const name = freshName();
    await admin.call("ACL", "SETUSER", name, "on", ">old", "~*", "&*", "+@all");
    const redis = server.connect({ username: name, password: "old" });
    // A waiter that has lost its subscription would wait for this long.
    await using client = new LockClient(redis, { ...UNHURRIED, replicas, pollCap: 600_000 });
    await using other = new LockClient(server.connect());
    const theirs = other.getLock(name);
    const mine = client.getLock(name);
    const wokenUp = async () => {
      const hold = await theirs.lock();
      const call = watch(mine.lock());
      await until("it listens", async () => (await admin.pubsub("CHANNELS", `*${name}*`)).length === 1);
      await hold.unlock();
      const mineNow = await soon(call);
      expect(mineNow.isHeld).toBe(true);
      await mineNow.unlock();
    };
    await wokenUp();
    redis.options.password = "new";
    await admin.call("ACL", "SETUSER", name, "resetpass", ">new");
    await admin.call("CLIENT", "KILL", "USER", name);
    await wokenUp();
  },
);
