/** Whether the server is new enough and permits what locks send: shown by a lock of a fresh name, taken and given back. */
import { isLockError, UnsupportedServerError } from "../base/errors.js";
import type { Router } from "../pubsub/router.js";
import type { Link } from "../redis/link.js";
import type { Env } from "./env.js";
import type { Primitive } from "./primitive.js";

const OLDEST: readonly [major: number, minor: number] = [6, 2];
const LEASE = 1_000;

/** @throws UNSUPPORTED for a server that is too old or forbids a command, UNAVAILABLE without an answer */
export async function checkServer(env: Env, router: Router, probe: Primitive): Promise<void> {
  const { link } = env;
  await checkVersion(link);
  const wireId = `${env.clientId}:${env.mint()}`;
  await permitted(probe.acquire(wireId, LEASE, link.commandTimeout));
  await permitted(probe.extend(wireId, LEASE));
  await permitted(probe.release(wireId, () => ({ count: 0, left: 0 })));
  // The scripts announce by pcall, so that it cannot fail a release: ask for it by itself.
  await permitted(link.command(link.publishCommand, probe.channel, "0"));
  await permitted(link.limited("", listening(router, probe.channel)));
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
      isLockError(error, "UNSUPPORTED") && /access (a|one of the) (key|channel)/.test(error.message);
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
