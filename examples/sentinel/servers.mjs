// A master, its replica, and three sentinels that watch them, all with passwords, for this example alone.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { freePort, start, startServer } from "../server.mjs";

export const NAME = "orders";
export const PASSWORD = "of the servers";
export const SENTINEL_PASSWORD = "of the sentinels";
const QUORUM = 2;

/** Resolves with { master, replica, sentinels } when the sentinels know each other and the replica is in step. */
export async function startServers(directory) {
  const auth = ["--requirepass", PASSWORD, "--masterauth", PASSWORD, "--repl-diskless-sync-delay", "0"];
  const master = await startServer(directory, auth);
  const replica = await startServer(directory, [...auth, "--replicaof", "127.0.0.1", master.port]);
  await until(replica, PASSWORD, async (redis) =>
    (await redis.info("replication")).includes("master_link_status:up"),
  );
  const sentinels = [];
  for (let i = 1; i <= 3; i++) sentinels.push(await startSentinel(join(directory, `sentinel-${i}`), master));
  for (const sentinel of sentinels) await until(sentinel, SENTINEL_PASSWORD, knowsAll);
  return { master, replica, sentinels };
}

/** A sentinel keeps what it learns in its configuration, so each has a file of its own. */
async function startSentinel(directory, master) {
  const port = await freePort();
  mkdirSync(directory);
  const file = join(directory, "sentinel.conf");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${directory}`,
    `requirepass "${SENTINEL_PASSWORD}"`,
    `sentinel sentinel-pass "${SENTINEL_PASSWORD}"`,
    `sentinel monitor ${NAME} 127.0.0.1 ${master.port} ${QUORUM}`,
    `sentinel auth-pass ${NAME} "${PASSWORD}"`,
    // Soon, for a short example. In production leave a master more time to answer.
    `sentinel down-after-milliseconds ${NAME} 1000`,
    `sentinel failover-timeout ${NAME} 2000`,
  ];
  writeFileSync(file, `${lines.join("\n")}\n`);
  await start(master.program, [file, "--sentinel"], "Sentinel ID is");
  return { host: "127.0.0.1", port };
}

/** The sentinels find each other by messages on the master, one every two seconds. */
async function knowsAll(redis) {
  const others = await redis.call("SENTINEL", "SENTINELS", NAME);
  const replicas = await redis.call("SENTINEL", "REPLICAS", NAME);
  return others.length === 2 && replicas.length === 1;
}

/** Asks a server or a sentinel until it says yes. */
async function until({ port }, password, question) {
  const redis = new Redis({ port, password });
  try {
    while (!(await question(redis))) await pause(50);
  } finally {
    redis.disconnect();
  }
}
