/**
 * Checks that the server is new enough and permits all that this client sends. It tries every command of the scripts, and
 * the keys and channels of a name, and takes and releases a lock. The name is a fresh one, behind the client's prefix.
 */
import { isLockError, type LockError, UnsupportedServerError } from "./base/errors.js";
import { extraChannelsOf, extraKeysOf } from "./base/names.js";
import { noop } from "./base/work.js";
import type { Env } from "./env.js";
import type { Kind } from "./kinds/kind.js";
import type { CommandRunner } from "./redis/command-runner.js";
import { scrubbed } from "./redis/failures.js";
import { serverRefused } from "./scripts/generated.js";

/** What a server before 6.2 says of itself. */
const TOO_OLD = /^redis_version:([0-5]\.\d+|6\.[01])\./m;
const LEASE = 1_000;

/**
 * `probe`: a lock of an unused name. For a client without a prefix the server may permit other names only, which this
 * check cannot know: then nothing more is checked.
 * @throws UNSUPPORTED for a server that is too old or forbids something,
 * UNAVAILABLE without an answer
 */
export async function checkServer(env: Env, probe: Kind): Promise<void> {
  const { runner, settings } = env;
  const { key } = probe;
  await checkVersion(runner);
  // Subscribers send PING as their heartbeat.
  await runner.command("ping");
  const channels = extraChannelsOf(key, env.wireId(), runner.isCluster);
  try {
    // Scripts get their channels as keys, so these are checked as keys, too.
    await checkScripts(runner, [key, ...extraKeysOf(key, env.wireId()), ...channels]);
  } catch (error) {
    if (!settings.prefix && isRefusedName(error) && error.message.includes(`"${key}"`)) return;
    throw error;
  }
  if (settings.replicas > 0) await runner.command("wait", "0", "0");
  for (const channel of channels) await checkChannel(env, channel);
  const wireId = env.wireId();
  const attempt = { lease: LEASE, wait: 0, coWaiters: [] };
  await runner.call(probe.lockName, () => probe.take(wireId, attempt), noop);
  await runner.call(probe.lockName, () => probe.end([wireId]), noop);
}

async function checkVersion(runner: CommandRunner): Promise<void> {
  const info = await runner.command("INFO", "server").catch((error: unknown) => {
    // The user may not call INFO. The checks that follow find what else is forbidden.
    if (!isLockError(error, "UNSUPPORTED")) throw error;
  });
  const version = TOO_OLD.exec(String(info))?.[1];
  if (version === undefined) return;
  throw new UnsupportedServerError(
    "",
    `the server is Redis ${version}`,
    undefined,
    "use Redis 6.2, or later",
  );
}

/** Checks that scripts may use the keys, can be called by their hash, and may call the commands that they need. */
async function checkScripts(runner: CommandRunner, keys: readonly [string, ...string[]]): Promise<void> {
  // It touches only the first key, but the server checks the rights to each key that a script declares.
  const call = { ...serverRefused.with([keys[0]], []), keys };
  // The first run of a script is an EVAL, the second an EVALSHA.
  await runner.call("", () => call, noop);
  const refused = await runner.call(
    "",
    () => call,
    (reply) => reply as string[],
  );
  if (refused.length === 0) return;
  const commands = refused.map((name) => `'${name}'`).join(", ");
  throw new UnsupportedServerError(
    "",
    `the server forbids, or lacks, commands that scripts call: ${commands}`,
  );
}

/** Whether the command is permitted, but not with this key or channel. */
function isRefusedName(error: unknown): error is LockError {
  return isLockError(error, "UNSUPPORTED") && /access .*\b(key|channel)/.test(error.message);
}

/** Checks that the user may publish on the channel, and subscribe to it. */
async function checkChannel({ runner, router }: Env, channel: string): Promise<void> {
  const refusal = (verb: string, error: Error) => {
    const what = `the user of the connection may not ${verb} the channel "${channel}": ${error.message}`;
    return new UnsupportedServerError("", what, error);
  };
  try {
    await runner.command(runner.publishCommand, channel, "0");
  } catch (error) {
    throw isRefusedName(error) ? refusal("publish to", error.cause as Error) : error;
  }
  let stop = noop;
  const heard = new Promise<void>((resolve, reject) => {
    stop = router.subscribe(channel, {
      hint: resolve,
      refused: (error) => reject(isLockError(error) ? error : refusal("subscribe to", scrubbed(error))),
    });
  });
  await runner.withTimeout("", heard).finally(stop);
}
