/**
 * Contract sections 1 and 6: no connection and no timer of ours keeps an idle process alive, and no internal promise rejects
 * unhandled.
 */
import { type ChildProcess, execFile } from "node:child_process";
import { describe, expect, test } from "vitest";
import { forFile, startCluster, startRedis, until } from "../support/index.js";
import { deferred, distUrl, isBuilt } from "./helpers.js";

const [server, cluster] = await Promise.all([forFile(startRedis()), forFile(startCluster())]);
const nodeRedisUrl = new URL("node-redis.js", distUrl).href;

interface Ended {
  readonly code: number;
  readonly output: string;
}

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

const PLACES = { PORT: server.port, CLUSTER: cluster.nodes[0]?.port, ENTRY: JSON.stringify(nodeRedisUrl) };

/** Runs a program that has `redis`, `client` and `lock`; one that does not end by itself is killed, with code -1. */
function run(body: string): Promise<Ended> {
  return start(body).ended;
}

function start(body: string, options: object = { watchdogTimeout: 30_000, commandTimeout: 20_000 }): Running {
  const program = `
    import { LockClient } from ${JSON.stringify(distUrl)};
    import { Redis } from "ioredis";
    process.on("unhandledRejection", (error) => { console.log("unhandled", error); process.exitCode = 3; });
    const redis = new Redis(${server.port});
    redis.on("error", () => {});
    const client = new LockClient(redis, ${JSON.stringify(options)});
    const lock = client.getLock("name-" + process.pid);
    const listening = async () => {
      while ((await redis.pubsub("CHANNELS", "*name-" + process.pid + "*")).length === 0) await new Promise(setImmediate);
    };
    ${body.replaceAll(/\b(PORT|CLUSTER|ENTRY)\b/g, (place) => String(PLACES[place as keyof typeof PLACES]))}
    console.log("end of program");`;
  const { promise: ended, resolve } = deferred<Ended>();
  const args = ["--input-type=module", "-e", program];
  const child = execFile(
    process.execPath,
    args,
    { timeout: 40_000, cwd: import.meta.dirname },
    (error, stdout, stderr) => {
      const code = error ? (child.exitCode ?? -1) : 0;
      resolve({ code, output: stdout + stderr });
    },
  );
  return { child, ended };
}

/** A waiter that a message wakes. */
const WAITED = `const first = await lock.lock(); const second = lock.lock(); await listening();
  await first.unlock(); await (await second).unlock();`;

const FINE = { code: 0, output: "end of program\n" };

describe.skipIf(!isBuilt)("a process exits by itself", () => {
  test.concurrent.each([
    ["a hold given back", "await (await lock.lock()).unlock(); await redis.quit();"],
    ["a client that was never used", "await redis.quit();"],
    [
      "waiters that timed out, and a subscriber connection, after close",
      `const hold = await lock.lock();
       await Promise.all([1, 2, 3].map(() => lock.tryLock(2_000)));
       await hold.unlock(); await client.close(); await redis.quit();`,
    ],
    ["a client that has waited, after quit of the connection it was given", `${WAITED} await redis.quit();`],
    [
      "a client with a connection for replicas, after quit of the one it was given",
      `const kept = new LockClient(redis, { replicas: 1, replicasTimeout: 1 });
       await kept.getLock(lock.name).lock().catch(({ code }) => { if (code !== "REPLICAS") throw code; });
       await redis.quit();`,
    ],
    [
      "calls that Redis did not answer, and what they leave to do",
      `const away = new LockClient(new Redis({ port: 1, lazyConnect: true }), { commandTimeout: 300 });
       await away.getLock("x").lock().catch(() => {}); await away.getLock("x").isLocked().catch(() => {});
       redis.disconnect();`,
    ],
    [
      "a client of a cluster",
      `const { Cluster } = await import("ioredis"); const nodes = new Cluster([{ port: CLUSTER }]);
       const spread = new LockClient(nodes, { commandTimeout: 30_000 }); const held = spread.getLock("c" + process.pid);
       const hold = await held.lock(); const next = held.lock({ wait: 500 }).catch(() => {}); await next;
       await hold.unlock(); await nodes.quit(); redis.disconnect();`,
    ],
    [
      "clients of node-redis",
      `const { createClient, createCluster } = await import("redis"); const { fromNodeRedis } = await import(ENTRY);
       const users = [createClient({ url: "redis://127.0.0.1:PORT" }), createCluster({ rootNodes: [{ url: "redis://127.0.0.1:CLUSTER" }] })];
       for (const user of users) {
         const lock = new LockClient(fromNodeRedis(user.on("error", () => {}))).getLock("n" + process.pid);
         const hold = await lock.lock(); await lock.tryLock(200); await hold.unlock();
         while (!user.isOpen) await new Promise(setImmediate);
         await user.close();
       }
       redis.disconnect();`,
    ],
    [
      "a client that owns its connection, after close",
      `const own = LockClient.connect("redis://127.0.0.1:PORT"); await own.ready();
       await own.getLock("x" + process.pid).run(() => {}); await own.close(); redis.disconnect();`,
    ],
    [
      "an unlock that gets no answer",
      // Nobody waits for the answer, so no timer may keep the process alive for it.
      "const hold = await lock.lock(); redis.disconnect(); hold.unlock().catch(() => {});",
    ],
  ])("%s [§1 unreferenced] [§6 no-unhandled]", async (_, body) => {
    expect(await run(body)).toEqual(FINE);
  });
});

/** Given connections that give up at once; `away` is a port where no server is. Each with calls that it lets down. */
const GIVING_UP = [
  [
    "ioredis",
    ["lock.run(() => {})", "lock.lock()", "lock.isLocked()", "number.acquire()", "tried.ready()"],
    "const away = new Redis({ port: 1, retryStrategy: () => null });",
  ],
  [
    "node-redis",
    ["lock.run(() => {})", "number.acquire()"],
    `const { createClient } = await import("redis"); const { fromNodeRedis } = await import(ENTRY);
    const away = fromNodeRedis(createClient({ url: "redis://127.0.0.1:1", socket: { reconnectStrategy: false } }).on("error", () => {}));`,
  ],
] as const;

describe.skipIf(!isBuilt)("a process whose connection gives up ends with what its call comes to", () => {
  test.concurrent.each(
    GIVING_UP.flatMap(([library, calls, connect]) => calls.map((call) => [library, call, connect])),
  )("%s, %s [§1 unreferenced] [F9]", async (_, call, connect) => {
    const { code, output } = await run(`redis.disconnect(); ${connect} away.on?.("error", () => {});
      const tried = new LockClient(away, { commandTimeout: 1_500 });
      { const lock = tried.getLock("gives up"); const number = tried.getSemaphore("gives up"); await ${call}; }`);
    expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining("UNAVAILABLE") });
  });
});

describe.skipIf(!isBuilt)("a process goes on by itself", () => {
  test.each([
    ["while it holds, and renews", "await lock.lock();"],
    ["while it waits", "new LockClient(redis).getLock(lock.name).lock(); await lock.lock();"],
  ])("%s [§1 unreferenced]", async (_, body) => {
    const running = start(`${body} redis.disconnect();`, { watchdogTimeout: 1_500 });
    const name = `name-${running.child.pid}`;
    await until("it holds", async () => (await server.call("EXISTS", name)) === 1);
    const begun = performance.now();
    // Without the process the lock would be free after its lease.
    while (performance.now() - begun < 3_000)
      await until("it is renewed", async () => Number(await server.call("PTTL", name)) > 1_000);
    running.child.kill();
    expect((await running.ended).code).toBe(-1);
  });
});
