/** Contract section 6: every object of the library can be printed, at any depth, without showing a password; and no log has one. */
import { execFile } from "node:child_process";
import { inspect, promisify } from "node:util";
import { expect, test } from "vitest";
import * as holdfast from "../../src/index.js";
import { LockClient, MultiLock, RedLock } from "../../src/index.js";
import { forFile, type RedisServer, startRedis } from "../support/index.js";
import { distUrl, failure, isBuilt, setUser } from "./helpers.js";
import { expectClean, LEASE, PASSWORD, USER_PASSWORD, url } from "./secrets.js";

const servers = await Promise.all(
  Array.from({ length: 3 }, () => forFile(startRedis({ password: PASSWORD }))),
);
const clients = await Promise.all([
  ...servers.map(({ port }) => forFile(LockClient.connect(url("", PASSWORD, port)))),
  forFile(new LockClient((servers[0] as RedisServer).connect())),
]);
await Promise.all(clients.map((client) => client.ready()));

/** The object as text, printed in every way. */
function prints(what: unknown): string[] {
  return [
    inspect(what, { depth: 12 }),
    inspect(what, { depth: 12, showHidden: true }),
    inspect(what, { depth: Number.POSITIVE_INFINITY, showHidden: true, getters: true }),
  ];
}

test("no object of a public class shows the password [§6 no-secrets] [B33]", async () => {
  const [one, two, three, given] = clients as [LockClient, LockClient, LockClient, LockClient];
  const readWrite = one.getReadWriteLock("document");
  const locks = [
    one.getLock("lock"),
    given.getLock("of a connection that was given"),
    one.getFairLock("fair"),
    one.getFencedLock("fenced"),
    readWrite.readLock(),
    new MultiLock(one.getLock("a"), two.getLock("b")),
    new RedLock(...[one, two, three].map((client) => client.getLock("red"))),
  ];
  const holds = await Promise.all(locks.map((lock) => lock.lock()));
  const [semaphore, permits, latch] = [
    one.getSemaphore("desks"),
    one.getPermitExpirableSemaphore("spaces"),
    one.getCountDownLatch("start"),
  ];
  await permits.trySetPermits(1);
  await permits.acquire();
  const errors = await Promise.all([
    failure(one.getLock("lock").lock({ wait: 1 })),
    failure(one.getLock("lock").unlock()),
  ]);
  const objects: object[] = [
    ...[one, given, readWrite, semaphore, permits, latch, one.newOwner()],
    ...[...locks, ...holds, ...holds.map(({ signal }) => signal), ...errors],
  ];
  for (const object of objects) for (const text of prints(object)) expect(text).not.toContain(PASSWORD);
  const classes = Object.values(holdfast).filter(
    (each) =>
      /^class /.test(String(each)) && !(each.prototype instanceof Error || each === holdfast.LockError),
  );
  const unseen = classes.filter((each) => !objects.some((object) => object.constructor === each));
  expect(unseen).toEqual([]);
  await Promise.all(holds.map((hold) => hold.unlock()));
});

test.skipIf(!isBuilt)(
  "what a process prints has no password, URL or script argument [§6 no-secrets]",
  async () => {
    const [server] = servers as [RedisServer];
    await setUser(server, "deaf", `>${USER_PASSWORD} ~* resetchannels +@all`);
    await server.call("HSET", "a", "b0e5b1a2-0000-4000-8000-000000000000:1", "1");
    const program = `
    import { LockClient } from ${JSON.stringify(distUrl)};
    for (const target of process.argv.slice(1)) {
      const client = LockClient.connect(target, { commandTimeout: 300, watchdogTimeout: 300 });
      client.on("acquired", () => { throw new Error("listener"); });
      const options = { wait: 500, lease: ${LEASE} };
      await client.getLock("a").lock(options).catch(() => {});
      await client.getLock("b").run(() => new Promise((done) => setTimeout(done, 400))).catch(() => {});
      await client.close({ timeout: 0 });
    }`;
    const targets = [
      url("", PASSWORD, server.port),
      url("deaf", USER_PASSWORD, server.port),
      url("", USER_PASSWORD, server.port),
      url("", PASSWORD, 1),
    ];
    const args = ["--input-type=module", "-e", program, "--", ...targets];
    const { stderr, stdout } = await promisify(execFile)(process.execPath, args);
    expectClean(stderr);
    expectClean(stdout);
  },
);
