/** Whether the server is new enough and permits what locks send: shown by a lock of a fresh name, taken and given back. */
import { isLockError, UnsupportedServerError } from "../base/errors.js";
import { tombstone } from "../base/names.js";
import type { Router } from "../pubsub/router.js";
import { checkAutoPipelining } from "../redis/auto-pipelining.js";
import type { Link } from "../redis/link.js";
import type { Env } from "./env.js";
import { NOTHING_LEFT, type Primitive } from "./primitive.js";
import { noop } from "./work.js";

const OLDEST: readonly [major: number, minor: number] = [6, 2];
const LEASE = 1_000;

/** @throws UNSUPPORTED for a server that is too old or forbids a command, and for an ioredis that cannot do it, UNAVAILABLE without an answer */
export async function checkServer(env: Env, router: Router, probe: Primitive): Promise<void> {
  const { link } = env;
  await checkVersion(link);
  await link.limited("", checkAutoPipelining(link.connection, probe.key));
  const wireId = env.wireId();
  const commands = inner(probe.key, tombstone(probe.key, wireId));
  commands.push([link.publishCommand, probe.channel, "0"]);
  for (const [name = "", ...args] of commands) await permitted(link.command(name, ...args));
  const other = env.wireId();
  await permitted(
    probe.acquire({ wireId: other, lease: LEASE, within: link.commandTimeout, fellows: undefined }),
  );
  await permitted(probe.release(other, other, { rest: () => NOTHING_LEFT, onSilence: noop }));
  await permitted(link.limited("", listening(router, probe.channel)));
}

/**
 * What the scripts call, one by one: from inside a script Redis 7.0 does not say which command it refused. They leave
 * nothing but a key that lapses.
 */
function inner(lock: string, marker: string): string[][] {
  const lease = String(LEASE);
  return [
    ["EXISTS", lock],
    // Asked for first: without it the next one would leave a key for ever.
    ["PEXPIRE", lock, lease],
    ["HSET", lock, "probe", "1"],
    ["PEXPIRE", lock, lease],
    ["PTTL", lock],
    ["HGET", lock, "probe"],
    ["HEXISTS", lock, "probe"],
    ["HLEN", lock],
    ["HDEL", lock, "probe"],
    ["SET", marker, "1", "PX", lease],
    ["DEL", lock],
  ];
}

async function checkVersion(link: Link): Promise<void> {
  let info: unknown;
  try {
    info = await link.command("INFO", "server");
  } catch (error) {
    // A user of few permissions: what is missing shows below.
    if (isLockError(error, "UNSUPPORTED")) return;
    throw error;
  }
  const version = /^redis_version:(\d+)\.(\d+)/m.exec(String(info));
  if (!version) return;
  const [major, minor] = [Number(version[1]), Number(version[2])];
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  const needed = OLDEST.join(".");
  throw new UnsupportedServerError(
    "",
    `the server is Redis ${major}.${minor}; ${needed} is the oldest that works`,
  );
}

/** A user may be confined to certain names: that a fresh one is not among them says nothing about commands. */
async function permitted(step: Promise<unknown>): Promise<void> {
  try {
    await step;
  } catch (error) {
    const confined =
      isLockError(error, "UNSUPPORTED") &&
      /access .*\b(key|channel)|publish to the channel/.test(error.message);
    if (!confined) throw error;
  }
}

function listening(router: Router, channel: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = router.subscribe(channel, {
      hint: () => {
        stop();
        resolve();
      },
      refused: (error) => {
        stop();
        const what = error instanceof Error ? error.message : "unknown error";
        reject(new UnsupportedServerError("", `the server forbids the channel: ${what}`));
      },
    });
  });
}
