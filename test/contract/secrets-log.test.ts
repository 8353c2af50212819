/** Contract section 6: no log carries a password, a URL or script arguments. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../support/index.js";
import { distUrl, isBuilt } from "./helpers.js";

const PASSWORD = "pa55-w0rd";
const USER_PASSWORD = "u5er-s3cret";
/** A lease that no other number looks like: it is a script argument. */
const LEASE = 86_413_579;

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis({ password: PASSWORD });
});
afterAll(() => server?.stop());

function url(user: string, password: string, port = server.port): string {
  return `redis://${user}:${password}@127.0.0.1:${port}`;
}

function isClean(text: string): void {
  for (const secret of [PASSWORD, USER_PASSWORD, String(LEASE), "redis.call"]) {
    expect(text).not.toContain(secret);
  }
  expect(text).not.toMatch(/rediss?:\/\/[^\s,]/);
}

test.skipIf(!isBuilt)("NODE_DEBUG=holdfast", async () => {
  await server.call(
    "ACL",
    "SETUSER",
    "deaf",
    "reset",
    "on",
    `>${USER_PASSWORD}`,
    "~*",
    "resetchannels",
    "+@all",
  );
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
    url("", PASSWORD),
    url("deaf", USER_PASSWORD),
    url("", USER_PASSWORD),
    url("", PASSWORD, 1),
  ];
  const { stderr, stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "-e", program, "--", ...targets],
    { env: { ...process.env, NODE_DEBUG: "holdfast" } },
  );
  expect(stderr).toMatch(/^HOLDFAST \d+:/m);
  isClean(stderr);
  isClean(stdout);
});
