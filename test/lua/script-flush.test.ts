/** The scripts as the server keeps them: under the generated digest, and sent again when the server has lost them. */
import { beforeEach, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import * as scripts from "../../src/scripts/generated.js";
import { allKeys, countCommands, forFile, startRedis, UNHURRIED } from "../support/index.js";

const server = await forFile(startRedis());
const counter = await forFile(countCommands(server));
beforeEach(() => server.call("FLUSHALL"));

const forget = () => server.call("SCRIPT", "FLUSH");

test("each script has the digest that the server gives it", async () => {
  for (const { name, text, sha1 } of Object.values(scripts))
    expect(await server.call("SCRIPT", "LOAD", text), name).toBe(sha1);
});

test("each script runs though the server has forgotten all, and is sent again in full [F22]", async () => {
  const client = new LockClient(server.connect(), { ...UNHURRIED, watchdogTimeout: 1_500 });
  const lock = client.getLock("job");
  for (const known of [false, true]) {
    await counter.reset();
    // A lost script costs one EVALSHA more; in the first round it is sent by EVAL at once.
    await forget();
    const hold = await lock.lock({ lease: 60_000 });
    await forget();
    const nested = await lock.lock({ owner: hold });
    expect(await server.call("HGET", "job", hold.ownerId)).toBe("2");
    await forget();
    await nested.extend(30_000);
    await forget();
    expect(await lock.getHoldCount({ owner: hold })).toBe(2);
    const renewed = new Promise((resolve) => client.once("renewed", resolve));
    await forget();
    await renewed;
    await forget();
    await nested.unlock();
    expect(await server.call("HGETALL", "job")).toEqual([hold.ownerId, "1"]);
    await forget();
    expect(await lock.forceUnlock()).toBe(true);
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await counter.settle();
    expect(counter.of("EVAL")).toBeGreaterThan(5);
    if (known) expect(counter.of("EVALSHA")).toBeGreaterThan(5);
  }
  await client.close();
  for (const { ttl } of (await allKeys(server.connect())).values()) expect(ttl).toBeGreaterThan(0);
});
