/** The scripts as the server keeps them: under the generated digest, and sent again when the server has lost them. */
import { beforeEach, describe, expect, test } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { LockClient } from "../../src/index.js";
import * as scripts from "../../src/scripts/generated.js";
import { allKeys, countCommands, forFile, startRedis, UNHURRIED } from "../support/index.js";

const server = await forFile(startRedis());
const counter = await forFile(countCommands(server));
beforeEach(() => server.call("FLUSHALL"));

const forget = () => server.call("SCRIPT", "FLUSH");

test.each(
  Object.values(scripts).flatMap(({ name, modern, legacy }) => [
    [`${name}, modern`, modern] as const,
    [`${name}, legacy`, legacy] as const,
  ]),
)("%s has the digest that the server gives it", async (_, { text, sha1 }) => {
  expect(await server.call("SCRIPT", "LOAD", text)).toBe(sha1);
});

describe.each([
  ["modern", false],
  ["legacy", true],
])("a client that is %s", (_, legacyServer) => {
  test("runs each script when the server has forgotten all", async () => {
    const client = new LockClient(server.connect(), {
      ...UNHURRIED,
      watchdogTimeout: 6_000,
      [INTERNALS]: { legacyServer },
    } as never);
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
      await forget();
      await (await lock.lock()).unlock();
      expect(await server.call("EXISTS", "job")).toBe(0);
      await counter.settle();
      expect(counter.of("EVAL")).toBeGreaterThan(6);
      if (known) expect(counter.of("EVALSHA")).toBeGreaterThan(6);
    }
    await client.close();
    for (const { ttl } of (await allKeys(server.connect())).values()) expect(ttl).toBeGreaterThan(0);
  });
});
