/** The masters of a Redlock: the connections that were given, each with a client of this library. */
import { setTimeout } from "../../base/platform.js";
import { LockClient, type LockClientOptions } from "../../index.js";
import type { RedlockClient } from "./errors.js";

/** Milliseconds that a server has to answer QUIT: a silent one must not keep the connection and the client open. */
const QUIT_TIME = 2_000;

/** A connection that was given, and the client that uses it. */
export interface Master {
  readonly redis: RedlockClient;
  readonly client: LockClient;
}

/** @throws TypeError, RangeError for a connection or options that LockClient refuses; then nothing listens to the others */
export function mastersOf(connections: Iterable<RedlockClient>, options: LockClientOptions): Master[] {
  const masters: Master[] = [];
  try {
    for (const redis of connections) masters.push({ redis, client: new LockClient(redis, options) });
  } catch (error) {
    for (const { client } of masters) void client.close({ timeout: 0 });
    throw error;
  }
  return masters;
}

export function isReady({ redis }: Master): boolean {
  return redis.status === "ready";
}

/** Ends the connection that was given, and the client. */
export async function quitMaster(master: Master): Promise<void> {
  const { redis, client } = master;
  // A connection that is away would answer QUIT when it is back; a command behind QUIT may cut off its answer.
  if (isReady(master)) await Promise.race([redis.quit().catch(() => {}), pause(QUIT_TIME)]);
  redis.disconnect();
  await client.close({ timeout: 0 });
}

/** Resolves after `ms`, without keeping the process alive. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
