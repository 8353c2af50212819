/** The masters of a Redlock: the connections that were given, each with a client of this library. */
import { setTimeout } from "../../base/platform.js";
import { LockClient, type LockClientOptions } from "../../index.js";
import type { RedlockClient } from "./errors.js";

/** Milliseconds that a server has to answer QUIT: a silent one must not keep the connection and the client open. */
const QUIT_TIME = 2_000;

/** A connection that was given, and the client that was made of it. */
export interface Master {
  readonly redis: RedlockClient;
  readonly client: LockClient;
  /** The client's own connections. */
  readonly own: readonly RedlockClient[];
}

/** @throws TypeError, RangeError for a connection or options that LockClient refuses; then nothing listens to the others */
export function mastersOf(connections: Iterable<RedlockClient>, options: LockClientOptions): Master[] {
  const masters: Master[] = [];
  try {
    for (const redis of connections) masters.push(masterOf(redis, options));
  } catch (error) {
    for (const { client } of masters) void client.close({ timeout: 0 });
    throw error;
  }
  return masters;
}

function masterOf(redis: RedlockClient, options: LockClientOptions): Master {
  const own: RedlockClient[] = [];
  const duplicate = (...how: never[]) => {
    const made = redis.duplicate(...how) as RedlockClient;
    own.push(made);
    return made;
  };
  const given = Object.create(redis, { duplicate: { value: duplicate } }) as RedlockClient;
  return { redis, client: new LockClient(given, options), own };
}

/** Ends the connection that was given, and the client; first those of the client, so that what is held lapses. */
export async function quitMaster({ redis, client, own }: Master): Promise<void> {
  for (const each of own) {
    // The client would connect it again to give back what is held.
    Object.assign(each, { connect: () => Promise.reject(new Error("quit")) });
    each.disconnect();
  }
  // A connection that is away would answer QUIT when it is back.
  if (redis.status === "ready") await Promise.race([redis.quit().catch(() => {}), pause(QUIT_TIME)]);
  redis.disconnect();
  await client.close({ timeout: 0 });
  await Promise.race([ended(redis), pause(QUIT_TIME)]);
}

async function ended(redis: RedlockClient): Promise<void> {
  const { once } = redis as unknown as { once(event: "end", listener: () => void): void };
  if (redis.status !== "end") await new Promise<void>((resolve) => once.call(redis, "end", resolve));
}

/** Resolves after `ms`, without keeping the process alive. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
