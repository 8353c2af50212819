/** Clients ask a node of a cluster as if it were a server alone. That cannot go well, and each caller learns so. */
import { expect, test } from "vitest";
import { LockClient, RedLock } from "../../src/index.js";
import { useSite } from "../entries/cli/program.js";
import { forFile, type RedisServer, startCluster, UNHURRIED } from "../support/index.js";

const cluster = await forFile(startCluster());
const site = await useSite();
const clients = await Promise.all(
  cluster.nodes.map((node) => forFile(new LockClient(node.connect(), UNHURRIED))),
);
const STRAY = {
  code: "UNSUPPORTED",
  message: expect.stringMatching(/one node of a cluster.*MOVED.*--cluster/),
};

/** A name on the first node, and one on another. */
async function names(): Promise<[here: string, there: string]> {
  const [first] = cluster.nodes;
  const all = ["apple", "birch", "cedar", "date", "elm", "fig"];
  const at = await Promise.all(all.map((name) => cluster.masterFor(name)));
  return [all[at.indexOf(first as RedisServer)] ?? "", all[at.findIndex((node) => node !== first)] ?? ""];
}

test("a key of another node is UNSUPPORTED at once, with the cure [B278]", async () => {
  const [client] = clients as [LockClient];
  const [, there] = await names();
  const begun = performance.now();
  const number = client.getSemaphore(there);
  const lock = client.getLock(there);
  for (const call of [
    lock.lock(),
    lock.forceUnlock(),
    number.acquire(),
    number.release(),
    client.inspect(there),
  ])
    await expect(call).rejects.toMatchObject(STRAY);
  expect(performance.now() - begun).toBeLessThan(UNHURRIED.commandTimeout);
});

test("a RedLock over the nodes of one cluster tells so [B278]", async () => {
  const [, there] = await names();
  const lock = new RedLock(...clients.slice(0, 3).map((client) => client.getLock(there)));
  await expect(lock.lock()).rejects.toMatchObject({
    code: "UNSUPPORTED",
    message: expect.stringContaining("no independent masters"),
  });
});

test("the command tells that it sees one node of a cluster only [B278]", async () => {
  const [client] = clients as [LockClient];
  const [here, there] = await names();
  const [{ url }] = cluster.nodes as readonly [RedisServer, ...RedisServer[]];
  const hold = await client.getLock(here).lock();
  const part = expect.stringContaining("so you see only its part: use --cluster");
  for (const command of ["ls", "waiters", "deadlocks"])
    expect(await site.main(command, "--url", url)).toMatchObject({ code: 0, err: part });
  expect(await site.main("ls", "--url", url, "--cluster")).toMatchObject({ code: 0, err: "" });
  const { code, err } = await site.main("get", there, "--url", url);
  expect(code).not.toBe(0);
  expect(err).toMatch(/one node of a cluster.*--cluster/);
  await hold.unlock();
});
