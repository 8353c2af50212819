/**
 * Contract section 6: an error's text names the lock, the problem and the remedy, and ends with the guide's anchor of
 * its code.
 */
import { readFile } from "node:fs/promises";
import { afterEach, describe, expect, test } from "vitest";
import { LockClient, type LockError, RedLock } from "../../src/index.js";
import { forFile, startRedis, until } from "../support/index.js";
import { failure } from "./helpers.js";

const server = await forFile(startRedis());
const client = await forFile(new LockClient(server.connect()));
await client.ready();
afterEach(() => server.call("FLUSHALL"));

/** Makes a call as a user with these rights. */
async function asUser(
  rights: string[],
  call: (client: LockClient) => Promise<unknown>,
  password = "pw",
): Promise<unknown> {
  await server.call("ACL", "SETUSER", "poor", "reset", "on", ">pw", ...rights);
  const poor = LockClient.connect({ port: server.port, username: "poor", password });
  return call(poor).finally(() => poor.close({ timeout: 0 }));
}

describe("the text of an error [B105]", () => {
  const FAILURES: [code: string, fail: () => Promise<unknown>, cure: RegExp][] = [
    [
      "WAIT_TIMEOUT",
      async () => {
        await client.getLock("a").lock({ lease: 60_000 });
        await client.getLock("a").lock({ wait: 1_000 });
      },
      /was not free within \d+ ms;.* wait longer/,
    ],
    [
      "WAIT_TIMEOUT",
      () => client.getSemaphore("a").run(() => {}, { wait: 1_000 }),
      /semaphore "a" had too few free permits.*trySetPermits\(\)/,
    ],
    ["NOT_OWNER", () => client.getLock("a").unlock(), /hold\.unlock\(\)/],
    [
      "NOT_OWNER",
      async () => {
        const hold = await client.getLock("a").lock();
        await hold.unlock();
        await hold.extend(1_000);
      },
      /was given back; take the lock again/,
    ],
    ["NOT_OWNER", () => client.getPermitExpirableSemaphore("a").release("0".repeat(32)), /longer lease/],
    [
      "LOCK_LOST",
      async () => {
        const hold = await client.getLock("a").lock();
        await server.call("DEL", "a");
        await hold.unlock();
      },
      /its key is gone \(forced from elsewhere, deleted.*check the work/,
    ],
    [
      "UPGRADE_REFUSED",
      () => {
        const lock = client.getReadWriteLock("a");
        return lock.readLock().run(() => lock.writeLock().lock());
      },
      /give the read side back first/,
    ],
    [
      "QUORUM",
      async () => {
        const dead = [1, 2].map((port) => LockClient.connect({ port }, { commandTimeout: 100 }));
        await new RedLock(...[client, ...dead].map((each) => each.getLock("a")))
          .lock()
          .finally(() => Promise.all(dead.map((each) => each.close({ timeout: 0 }))));
      },
      /too few of the 3 masters.*`errors`.*; bring the masters back/,
    ],
    [
      "UNSUPPORTED",
      () => asUser(["~*", "&*", "+@all", "-evalsha", "-eval"], (poor) => poor.getLock("a").lock()),
      /forbids a command: NOPERM.*; give the user the rights in docs\/guide\.md#rights/,
    ],
    [
      "UNSUPPORTED",
      () => asUser(["~b", "&*", "+@all"], (poor) => poor.getLock("a").lock()),
      /may not use "a".*; give the user the rights in docs\/guide\.md#rights/,
    ],
    [
      "UNSUPPORTED",
      async () => {
        await client.getLock("a").lock({ lease: 60_000 });
        await asUser(["~*", "resetchannels", "+@all"], (poor) => poor.getLock("a").lock());
      },
      /forbids the channel.*; give the user the rights in docs\/guide\.md#rights/,
    ],
    [
      "UNSUPPORTED",
      () => asUser([], (poor) => poor.getLock("a").lock(), "wrong"),
      /refuses the user name or password.*; check the user name and password of the connection/,
    ],
    [
      "WRONG_DATA",
      async () => {
        await server.call("SET", "a", "somebody's");
        await client.getLock("a").lock();
      },
      /WRONGTYPE.*another name.*prefix/,
    ],
    [
      "CLIENT_CLOSED",
      async () => {
        const closed = new LockClient(server.connect());
        await closed.close();
        await closed.getLock("a").lock();
      },
      /before close\(\)/,
    ],
    [
      "REPLICAS",
      async () => {
        const strict = new LockClient(server.connect(), { replicas: 1, replicasTimeout: 50 });
        await strict
          .getLock("a")
          .lock()
          .finally(() => strict.close({ timeout: 0 }));
      },
      /look at the replicas/i,
    ],
    [
      "UNAVAILABLE",
      async () => {
        const hasty = new LockClient(server.connect(), { commandTimeout: 100 });
        await until("it is ready", () => hasty.ready().then(() => true));
        server.pause();
        await hasty
          .getLock("a")
          .lock()
          .finally(() => {
            server.resume();
            return hasty.close({ timeout: 0 });
          });
      },
      /try again later/,
    ],
  ];

  test.for(FAILURES)("%s: %s", async ([code, fail, cure]) => {
    const error = (await failure(fail)) as LockError;
    expect(error.code).toBe(code);
    expect(error.message).toContain(`"${error.lockName}"`);
    expect(error.message).toMatch(cure);
    const anchor = `#${code.toLowerCase()}`;
    expect(error.message.endsWith(`. See docs/guide.md${anchor}`)).toBe(true);
    expect(await readFile(new URL("../../docs/guide.md", import.meta.url), "utf8")).toContain(`(${anchor})`);
  });
});
