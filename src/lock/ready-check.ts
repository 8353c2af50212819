/**
 * Checks that the server is new enough and permits all that this client sends. It tries every command of the scripts, and
 * the keys and channels of a name, and takes and releases a lock. The name is a fresh one, behind the client's prefix.
 */
import { createHash } from "node:crypto";
import { ClientClosedError, isLockError, UnsupportedServerError } from "../base/errors.js";
import { extraChannelsOf, extraKeysOf } from "../base/names.js";
import { noop } from "../base/work.js";
import type { Env } from "../env.js";
import type { Kind } from "../kinds/kind.js";
import type { Router } from "../pubsub/router.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { scrubbed } from "../redis/failures.js";
import { serverRefused } from "../scripts/generated.js";

const OLDEST: readonly [major: number, minor: number] = [6, 2];
const LEASE = 1_000;
/** A script that does nothing with the key it names. */
const NOTHING = "return 1";
const NOTHING_SHA = createHash("sha1").update(NOTHING).digest("hex");

/**
 * `probe`: a lock of an unused name. `prefixed`: all names of the client have the prefix of that name. Without a prefix,
 * the server may permit the user other names only, which this check cannot know: then nothing more is checked.
 * @throws UNSUPPORTED for a server that is too old or forbids something,
 * UNAVAILABLE without an answer
 */
export async function checkServer(env: Env, router: Router, probe: Kind, prefixed: boolean): Promise<void> {
  const { runner } = env;
  const { key } = probe;
  await checkVersion(runner);
  // Subscribers send PING as their heartbeat.
  await runner.command("ping");
  if (!(await mayUse(runner, key, prefixed))) return;
  await checkScripts(runner, key);
  const channels = extraChannelsOf(key, env.wireId(), runner.isCluster);
  // Scripts get their channels as keys, so these are checked as keys, too.
  const names = [...extraKeysOf(key, env.wireId()), ...channels];
  await Promise.all(names.map((name) => mayUse(runner, name, true)));
  for (const channel of channels) await checkChannel(runner, router, channel);
  const wireId = env.wireId();
  const attempt = { lease: LEASE, wait: 0, coWaiters: [] };
  await runner.call(probe.lockName, () => probe.take(wireId, attempt), noop);
  await runner.call(probe.lockName, () => probe.end([wireId]), noop);
}

async function checkVersion(runner: CommandRunner): Promise<void> {
  let info: unknown;
  try {
    info = await runner.command("INFO", "server");
  } catch (error) {
    // The user may not call INFO. The checks that follow find what else is forbidden.
    if (isLockError(error, "UNSUPPORTED")) return;
    throw error;
  }
  const version = /^redis_version:(\d+)\.(\d+)/m.exec(String(info));
  if (!version) return;
  const [major, minor] = [Number(version[1]), Number(version[2])];
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  const needed = OLDEST.join(".");
  const cure = `use Redis ${needed}, or later`;
  throw new UnsupportedServerError("", `the server is Redis ${major}.${minor}`, undefined, cure);
}

/** Whether scripts may use the key. With `must`, a forbidden key is UNSUPPORTED, and the error names it. */
async function mayUse(runner: CommandRunner, key: string, must: boolean): Promise<boolean> {
  try {
    await runner.command("eval", NOTHING, "1", key);
    return true;
  } catch (error) {
    if (!isRefusedName(error)) throw error;
    if (!must) return false;
    throw new UnsupportedServerError("", `the user of the connection may not use the key "${key}"`, error);
  }
}

/** Checks that scripts can be called by their hash, and may call the commands that they need. */
async function checkScripts(runner: CommandRunner, key: string): Promise<void> {
  await runner.command("evalsha", NOTHING_SHA, "1", key);
  const refused = await runner.call(
    "",
    () => serverRefused.with([key], []),
    (reply) => reply as string[],
  );
  if (refused.length === 0) return;
  const commands = refused.map((name) => `'${name}'`).join(", ");
  throw new UnsupportedServerError("", `the server forbids commands that scripts call: ${commands}`);
}

/** Whether the command is permitted, but not with this key or channel. */
function isRefusedName(error: unknown): boolean {
  return isLockError(error, "UNSUPPORTED") && /access .*\b(key|channel)/.test(error.message);
}

/** Checks that the user may publish on the channel, and subscribe to it. */
async function checkChannel(runner: CommandRunner, router: Router, channel: string): Promise<void> {
  const refusal = (verb: string, error: unknown) => {
    const { message: why } = (isLockError(error) ? error.cause : error) as Error;
    const what = `the user of the connection may not ${verb} the channel "${channel}": ${why}`;
    return new UnsupportedServerError("", what, error);
  };
  try {
    await runner.command(runner.publishCommand, channel, "0");
  } catch (error) {
    throw isRefusedName(error) ? refusal("publish to", error) : error;
  }
  let stop = noop;
  let failure: Error | undefined;
  const heard = new Promise<void>((resolve, reject) => {
    stop = router.subscribe(channel, {
      hint: resolve,
      refused: (error) => reject(refusal("subscribe to", error)),
      failed: (error) => {
        failure = scrubbed(error);
      },
      closed: () => reject(new ClientClosedError("")),
    });
  });
  try {
    await runner.withTimeout("", heard);
  } catch (error) {
    // If the connection for commands is down, its own trouble says more than that the subscriber failed, too.
    const cause = runner.connected ? failure : undefined;
    throw isLockError(error, "UNAVAILABLE") ? runner.unavailable("", cause) : error;
  } finally {
    stop();
  }
}
