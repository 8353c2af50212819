/** Contract section 6: no log contains a password, a URL or script arguments. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { forFile, startRedis } from "../support/index.js";
import { distUrl, isBuilt, setUser } from "./helpers.js";
import { expectClean, LEASE, PASSWORD, USER_PASSWORD, url } from "./secrets.js";

const server = await forFile(startRedis({ password: PASSWORD }));

test.skipIf(!isBuilt)("NODE_DEBUG=holdfast", async () => {
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
  const { stderr, stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "-e", program, "--", ...targets],
    { env: { ...process.env, NODE_DEBUG: "holdfast" } },
  );
  expect(stderr).toMatch(/^HOLDFAST \d+:/m);
  expectClean(stderr);
  expectClean(stdout);
});
