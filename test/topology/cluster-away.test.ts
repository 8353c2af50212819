/** The silence of one master of a cluster does not affect calls on the others, nor the other way round. */
import { expect, test } from "vitest";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { failure, warmUpAtLast } from "../contract/helpers.js";
import { failOnUnhandledRejections, watch } from "../faults/harness.js";
import { forFile, type RedisServer, startCluster, startClusterProxy } from "../support/index.js";
import { namesOn } from "./cluster-crew.js";

/** An owner that no client here knows. */
const STRANGER = "b0e5b1a2-0000-4000-8000-000000000000:1";
/** Milliseconds, longer than any test. */
const LONG = 600_000;
/** Milliseconds within which a busy machine has answered. */
const ANSWERED = 4_500;

failOnUnhandledRejections();
const cluster = await forFile(startCluster());
const proxies = await forFile(startClusterProxy(cluster));

interface Scene extends AsyncDisposable {
  readonly client: LockClient;
  /** Two locks on two masters; another owner holds both. */
  readonly here: string;
  readonly there: string;
  /** Makes the master of `there` silent. */
  silence(): Promise<void>;
}

async function scene(options: LockClientOptions): Promise<Scene> {
  const redis = proxies.connect();
  const client = new LockClient(redis, options);
  const masters = (await cluster.masters()) as RedisServer[];
  const names = await Promise.all(
    masters.slice(0, 2).map(async (master) => {
      const [warm = "", name = ""] = await namesOn(master, "away", 2);
      await warmUpAtLast(client.getLock(warm));
      await master.call("HSET", name, STRANGER, "1");
      await master.call("PEXPIRE", name, LONG);
      return name;
    }),
  );
  const [here = "", there = ""] = names;
  const proxy = await proxies.proxyFor(there);
  return {
    client,
    here,
    there,
    silence: async () => proxy.stall(),
    [Symbol.asyncDispose]: async () => {
      proxy.restore();
      await client.close({ timeout: 0 });
      redis.disconnect();
    },
  };
}

test("a wait that ends while others hold the lock is null, though another master owes an answer [B28]", async () => {
  await using set = await scene({ commandTimeout: 7_000 });
  await set.silence();
  const owed = watch(set.client.getLock(set.there).lock({ wait: LONG }));
  const lock = set.client.getLock(set.here);
  await Promise.all([
    expect(lock.tryLock(ANSWERED)).resolves.toBeNull(),
    expect(lock.lock({ wait: ANSWERED })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" }),
  ]);
  expect(await failure(owed.promise)).toMatchObject({ code: "UNAVAILABLE" });
});
