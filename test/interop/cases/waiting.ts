/** Finds out from Redis which calls wait, on either side. */
import type { Redis } from "ioredis";
import { expect } from "vitest";
import { SOON, type Watched, watch } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import type { Scene } from "../scene.js";

/** The commands by which locks and semaphores are asked for. */
export const SCRIPT: RegExp = /^eval(sha)?$/;
/** The command that looks at a latch, in a script or without. */
export const LOOK_AT_LATCH: RegExp = /^get$/;

/**
 * Makes the call and resolves when it waits: it was refused, a channel of that name has a listener, and it has asked
 * once more since. From then on only a message or a timer can end it. `questions`: how many commands that takes.
 */
export async function parked<T>(
  scene: Scene,
  name: string,
  call: () => Promise<T>,
  { command = SCRIPT, questions = 2 }: { command?: RegExp; questions?: number } = {},
): Promise<Watched<T>> {
  const before = await asked(scene.redis, command);
  const watched = watch(call());
  const waits = async (): Promise<boolean> => {
    if (watched.state !== "pending") return true;
    return (await asked(scene.redis, command)) >= before + questions && (await listeners(scene, name)) > 0;
  };
  await until(`a call waits for ${name}`, waits, { timeout: SOON });
  if (watched.state !== "pending") throw new Error("the call did not wait", { cause: watched.error });
  return watched;
}

/**
 * How often that command was run with success by any client, also in scripts. A script that was sent before the server
 * knew it, and then again with its text, counts once.
 */
export async function asked(redis: Redis, command: RegExp): Promise<number> {
  const info = await redis.info("commandstats");
  const stats = [...info.matchAll(/^cmdstat_(\w+):calls=(\d+).*?failed_calls=(\d+)/gm)];
  const those = stats.filter(([, verb = ""]) => command.test(verb));
  return those.reduce((sum, [, , calls, failed]) => sum + Number(calls) - Number(failed), 0);
}

/** The number of connections that listen to channels of that lock, semaphore or latch. */
export async function listeners({ redis }: Scene, name: string): Promise<number> {
  const channels = ((await redis.pubsub("CHANNELS")) as string[]).filter((each) => each.includes(name));
  if (channels.length === 0) return 0;
  const counts = (await redis.pubsub("NUMSUB", ...channels)) as (string | number)[];
  return counts.reduce<number>((sum, count, i) => (i % 2 === 1 ? sum + Number(count) : sum), 0);
}

/** The lock is free, and soon its channels have no listener. */
export async function expectNothingLeft(scene: Scene, name: string): Promise<void> {
  expect(await scene.redis.exists(name)).toBe(0);
  await until(`nobody listens to ${name}`, async () => (await listeners(scene, name)) === 0, {
    timeout: SOON,
  });
}
