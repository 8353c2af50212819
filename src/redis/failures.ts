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
import type { Connection } from "./connection.js";

const LACK_CURE = "use Redis 6.2 or later, or Valkey, with all its commands";

/** Replies that say "not now": the command was not executed, and the same one may succeed later. */
const PASSING = new Set([
  "BUSY",
  "LOADING",
  "TRYAGAIN",
  "CLUSTERDOWN",
  "MASTERDOWN",
  // The server cut a WAIT short, because it became a replica.
  "UNBLOCKED",
  "READONLY",
  "OOM",
  "MISCONF",
  "NOREPLICAS",
  "MOVED",
  "ASK",
]);

/** Parts of further replies that say "not now", but whose code does not. */
const PASSING_TEXTS: readonly string[] = [
  // The master became a replica between the script and its WAIT.
  "WAIT cannot be used with replica",
  // Some of the keys that the script looks at have moved already, with more of their slot to come.
  "attempted to access a non local key",
];

/** The script itself is wrong: sent again, it gets the same answer. */
const BROKEN_SCRIPT = /Error compiling script|\buser_script:\d+:/;

/** What a server before Redis 7 puts before the error of a command that a script has called. */
const SCRIPT_FRAME = /^ERR Error running script \(call to f_[0-9a-f]{40}\): (?:@user_script: ?\d+: )*-?/;

/** A new error with the text of this one, without the parts that could show arguments. */
export function scrubbed(error: unknown): Error {
  const message = error instanceof Error ? error.message : "unknown error";
  const said = message.replace(SCRIPT_FRAME, "");
  const clean = new Error(said.split(/, with args beginning with| script: [0-9a-f]{40}/)[0]);
  clean.name = error instanceof Error ? error.name : "Error";
  return clean;
}

/** True if it is what the server said. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}

/** The error code that a reply starts with, also if a command of a script caused it. */
function replyCode(message: string): string {
  return /^-?([A-Z]+)\b/.exec(message)?.[1] ?? "";
}

function lacksPermission(message: string): boolean {
  return /^NOPERM\b|ACL failure in script|has no permissions|user executing the script can't/.test(message);
}

/** True if the user may not use one of the keys that a command names. */
export function forbidsKey(error: unknown): boolean {
  return isReply(error) && lacksPermission(error.message) && /access .*\bkeys?\b/.test(error.message);
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
  return lacksPermission(error.message) || LACKS_COMMAND.test(error.message);
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

/** The error of a node of a cluster that is asked as if it were the only one, which no other try would mend. */
export function strayed(error: unknown, lockName: string): LockError | undefined {
  if (!isReply(error) || !/^(MOVED|ASK|CROSSSLOT)\b/.test(error.message)) return undefined;
  const cause = scrubbed(error);
  const what = `this server is one node of a cluster: ${cause.message}`;
  const cure =
    "connect to the whole cluster, by Cluster of ioredis, createCluster of redis, or --cluster; its nodes are no independent masters for a RedLock";
  return new UnsupportedServerError(lockName, what, cause, cure);
}

/** A server before Redis 7 takes the `#!lua` line for a syntax error. */
export function isShebangRefused(error: unknown): boolean {
  return isReply(error) && /Error compiling script.*near '#'/.test(error.message);
}

/**
 * The typed error of a failure that will not pass by itself; undefined if another try may help. `vital`: the call has
 * to be done in the end, so an unknown reply (of a proxy or a future server) does not end it. `forbidden`: the keys
 * that the user may not use, if they are known.
 */
export function finalError(
  error: unknown,
  lockName: string,
  vital: boolean,
  forbidden: readonly string[] = [],
): LockError | undefined {
  if (isLockError(error)) return error;
  if (!isReply(error)) return undefined;
  const cause = scrubbed(error);
  const { message } = cause;
  if (/^(NOAUTH|WRONGPASS)\b/.test(message)) {
    const what = "the server refuses the user name or password of the connection, or asks for one";
    const cure = "check the user name and password of the connection";
    return new UnsupportedServerError(lockName, `${what}: ${message}`, cause, cure);
  }
  if (lacksPermission(message)) {
    const keys = forbidden.map((key) => `"${key}"`).join(", ");
    const what = keys ? `the user of the connection may not use ${keys}` : "the server forbids a command";
    return new UnsupportedServerError(lockName, `${what}: ${message}`, cause);
  }
  if (/unknown (redis )?command/i.test(message)) {
    return new UnsupportedServerError(lockName, `the server lacks a command: ${message}`, cause, LACK_CURE);
  }
  if (/DB index is out of range/i.test(message)) {
    const cure = "use a database that the server has, or raise its setting `databases`";
    return new UnsupportedServerError(lockName, `the server lacks the database: ${message}`, cause, cure);
  }
  const wrongData = /WRONGTYPE.*|value is not an integer.*|increment or decrement would overflow.*/s.exec(
    message,
  );
  if (wrongData) {
    const [text] = wrongData;
    return new WrongDataError(lockName, Object.assign(new Error(text), { name: cause.name }));
  }
  if (PASSING.has(replyCode(message))) return undefined;
  if (PASSING_TEXTS.some((text) => message.includes(text))) return undefined;
  if (vital && !BROKEN_SCRIPT.test(message)) return undefined;
  return new RedisUnavailableError(lockName, cause);
}
