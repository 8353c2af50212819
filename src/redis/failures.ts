/**
 * What an error of ioredis or Redis means for a call: try again, or give up with which typed error.
 * Errors of ioredis carry the command with its arguments; none of that leaves this file.
 */
import {
  isLockError,
  type LockError,
  RedisUnavailableError,
  UnsupportedServerError,
  WrongDataError,
} from "../base/errors.js";
import type { AnyScript } from "../scripts/script.js";
import type { Connection } from "./connection.js";

/** The script itself is wrong: sent again, it gets the same answer. */
const BROKEN_SCRIPT = /Error compiling script|\buser_script:\d+:/;

/** What a server before Redis 7 puts before the error of a command that a script has called. */
const SCRIPT_FRAME = /^ERR Error running script \(call to f_[0-9a-f]{40}\): (?:@user_script: ?\d+: )*-?/;

/** A new error with the text of this one, without the parts that could show arguments. */
export function scrubbed(error: unknown): Error {
  const { message, name } = error instanceof Error ? error : new Error("unknown error");
  const said = message.replace(SCRIPT_FRAME, "");
  const clean = new Error(said.split(/, with args beginning with| script: [0-9a-f]{40}/)[0]);
  clean.name = name;
  return clean;
}

/** True if it is what the server said. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}

const LACKS_PERMISSION = /^NOPERM\b|ACL failure in script|has no permissions|user executing the script can't/;

/** True if the user may not use one of the keys that a command names. */
export function forbidsKey(error: unknown): boolean {
  return isReply(error) && LACKS_PERMISSION.test(error.message) && /access .*\bkeys?\b/.test(error.message);
}

/**
 * Redis only says that a command names a key that the user may not use. This asks for each key alone. Resolves with the
 * keys that are refused, or with all keys if none is.
 */
export async function forbiddenKeys(
  connection: Connection,
  keys: readonly string[],
): Promise<readonly string[]> {
  const isForbidden = (key: string) => connection.call("EXISTS", key).then(() => false, forbidsKey);
  const refused = await Promise.all(keys.map(isForbidden));
  // A user may be allowed to read a key but not to write it; then EXISTS refuses none.
  return refused.includes(true) ? keys.filter((_, i) => refused[i]) : keys;
}

/** Servers and proxies other than Redis say in words of their own that they lack a command or subcommand. */
const LACKS_COMMAND =
  /unknown\b.*command|wrong number of arguments|syntax error|unsupported|not (supported|allowed)|disabled/i;

/** True if the server does not know the command or subcommand, or forbids it to this user. */
export function lacksCommand(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return LACKS_PERMISSION.test(error.message) || LACKS_COMMAND.test(error.message);
}

/** Whether one key of a command may be the cause of this error of a call, so that another key would fare better. */
export function isOfOneKey(error: unknown): boolean {
  if (isLockError(error, "UNSUPPORTED") || isLockError(error, "WRONG_DATA")) return true;
  // The keys of a slot that moves are partly there and partly here.
  return isLockError(error, "UNAVAILABLE") && /\bTRYAGAIN\b/.test(String(error.cause));
}

export function isMissingScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith("NOSCRIPT");
}

/** True if another master has the key's slot. */
export function isMoved(error: unknown): boolean {
  return isReply(error) && error.message.startsWith("MOVED ");
}

/** Redis says only in which line of a script it was that a command was refused: the last command called up to there. */
function commandIn({ text }: AnyScript, message: string): string | undefined {
  const line = Number(/@user_script: ?(\d+)/.exec(message)?.[1] ?? 0);
  const before = text.split("\n", line).join("\n");
  return [...before.matchAll(/redis\.p?call\('(\w+)'/g)].at(-1)?.[1]?.toLowerCase();
}

type Lack = readonly [RegExp, what: string, cure?: string];

const STRAYED: Lack = [
  /^(MOVED|ASK|CROSSSLOT)\b/,
  "this server is one node of a cluster",
  "connect to the whole cluster, by Cluster, createCluster or --cluster; its nodes are no independent masters for a RedLock",
];

/** What a server lacks, or refuses for good, by its reply; and what to do about it. */
const LACKS: readonly Lack[] = [
  [
    /^(NOAUTH|WRONGPASS)\b/,
    "the server refuses the user name or password",
    "check the user name and password of the connection",
  ],
  [LACKS_PERMISSION, "the server forbids a command"],
  [
    /unknown (redis )?command/i,
    "the server lacks a command",
    "use Redis 6.2 or later, or Valkey, with all its commands",
  ],
  [
    /DB index is out of range/i,
    "the server lacks the database",
    "use a database that the server has, or raise its setting `databases`",
  ],
  STRAYED,
];

const OTHER_DATA = /WRONGTYPE|value is not an integer|increment or decrement would overflow/;

/**
 * The typed error of a failure that will not pass by itself; undefined if another try may help. Any reply may pass that
 * is not known to be final, such as READONLY, LOADING, or that of a proxy. `script`: what was refused; `forbidden`: the keys
 * that the user may not use, if they are known.
 */
export function finalError(
  error: unknown,
  lockName: string,
  isCluster: boolean,
  script?: AnyScript,
  forbidden: readonly string[] = [],
): LockError | undefined {
  if (isLockError(error)) return error;
  if (!isReply(error)) return undefined;
  const cause = scrubbed(error);
  const { message } = cause;
  const lack = LACKS.find(([sign]) => sign.test(message));
  // A cluster's connection follows a slot; the connection to one node never does.
  if (isCluster && lack === STRAYED) return undefined;
  if (lack) {
    const [, what, cure] = lack;
    const keys = forbidden.map((key) => `"${key}"`).join(", ");
    const command = script && commandIn(script, error.message);
    const refused = command ? `${what}, '${command}'` : what;
    const told = keys ? `the user of the connection may not use ${keys}` : refused;
    return new UnsupportedServerError(lockName, `${told}: ${message}`, cause, cure);
  }
  if (OTHER_DATA.test(message)) return new WrongDataError(lockName, cause);
  return BROKEN_SCRIPT.test(message) ? new RedisUnavailableError(lockName, cause) : undefined;
}
