/** Programs that the consumers of the package run. Each prints what its test compares. */

export const IMPORT = `import { LockClient } from "holdfast";`;
export const REQUIRE = `const { LockClient } = require("holdfast");`;

/** The output of {@link takeAndGiveBack}. */
export const TAKEN_AND_GIVEN_BACK = "true\nfalse\n";

/** Takes a lock and gives it back, on the server that the first argument names. */
export function takeAndGiveBack(load: string, connect = "LockClient.connect(process.argv[2])"): string {
  return `${load}
async function main() {
  const client = ${connect};
  const hold = await client.getLock("a").lock({ lease: 5000 });
  console.log(hold.isHeld);
  await hold.unlock();
  console.log(hold.isHeld);
  await client.close();
}
main();
`;
}

export const SAME_CLASS = `import { createRequire } from "node:module";
const imported = await import("holdfast");
const required = createRequire(import.meta.url)("holdfast");
console.log(imported.LockClient === required.LockClient);
`;

export const IMPORT_ALL = (names: readonly string[]): string =>
  names.map((name, n) => `import * as e${n} from "${name}";`).join("\n");
export const REQUIRE_ALL = (names: readonly string[]): string =>
  names.map((name, n) => `const e${n} = require("${name}");`).join("\n");

/**
 * Loads the root and all other entries. Prints whether holdfast/http knows an error of the root, and whether the
 * default export of holdfast/redlock is its class.
 */
export function entries(load: typeof IMPORT_ALL, names: readonly string[]): string {
  const all = ["holdfast", ...names.map((name) => `holdfast/${name}`)];
  const [http, redlock] = ["http", "redlock"].map((name) => `e${all.indexOf(`holdfast/${name}`)}`);
  return `${load(all)}
const error = new e0.LockTimeoutError("a", 1);
console.log(${http}.problemOf(error).code, ${http}.httpStatusOf(error), ${redlock}.default === ${redlock}.Redlock);
`;
}

/** Prints that the package loaded, then why `connect` fails without ioredis. */
export function connectWithoutIoredis(load: string): string {
  return `${load}
console.log(typeof LockClient);
try {
  LockClient.connect("redis://127.0.0.1:1");
} catch (error) {
  console.log(error.message);
}
`;
}

/** Only compiled, never run. `ioredis` and `ioredis5` are the two majors. */
export const TYPED = `import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import {
  isLockError, LockClient, MultiLock, QuorumError, RedLock,
  type Hold, type HolderInfo, type Lock, type LockFace, type LockInfo, type MultiHold, type WaiterInfo,
} from "holdfast";

export const clients: LockClient[] = [
  new LockClient(new Redis("redis://127.0.0.1:1")),
  new LockClient(new Redis({ replyMapping: "resp3" })),
  new LockClient(new Cluster([])),
  new LockClient(new Redis5("redis://127.0.0.1:1")),
  new LockClient(new Cluster5([]), { watchdogTimeout: 1000, prefix: "p" }),
  LockClient.connect("redis://127.0.0.1:1"),
  LockClient.connect({ host: "127.0.0.1" }),
];

export async function work(client: LockClient): Promise<number> {
  const lock: Lock = client.getLock("a");
  await using hold: Hold = await lock.lock({ wait: 100, lease: 5000, signal: AbortSignal.timeout(50) });
  const second: Hold | null = await lock.tryLock(500, 10_000);
  await second?.unlock();
  const aborted: boolean = hold.signal.aborted;
  return await lock.run(async (inner) => (aborted ? 0 : inner.remaining));
}

/** Locks of any kind, and groups, are the same to who only takes and gives back. */
export function faces(a: Lock, b: Lock, client: LockClient): readonly LockFace[] {
  const document = client.getReadWriteLock("a");
  const sides = [document.readLock(), document.writeLock()];
  return [a, client.getFencedLock("a"), client.getFairLock("a"), ...sides, new MultiLock(a, b), new RedLock(a, b, a)];
}

/** The lists are the caller's own. */
export function lists(hold: MultiHold, info: LockInfo, error: QuorumError): void {
  const members: Hold[] = hold.members;
  const [holders, waiters, waiting]: [HolderInfo[], string[], WaiterInfo[]] = [info.holders, info.waiters, info.waiting];
  const held: string[] | undefined = waiting[0]?.holds;
  const errors: unknown[] = isLockError(error) ? (error.errors ?? []) : [];
  console.log(members, holders, waiters, held, errors);
}

export function codeOf(error: unknown): string | undefined {
  return isLockError(error) ? error.code : undefined;
}

// @ts-expect-error: no connection
new LockClient({});
// @ts-expect-error: not an option of ioredis
LockClient.connect({ hots: "127.0.0.1" });
// @ts-expect-error: not an option
clients[0]?.getLock("a").lock({ timeout: 5 });
// @ts-expect-error: a name is text
clients[0]?.getLock(1);
`;

/** Only compiled, never run. */
export const TYPED_REDLOCK = `import { type EventEmitter, once } from "node:events";
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import Redlock, { ExecutionError, type Lock as Taken, Redlock as Named } from "holdfast/redlock";

export async function workAsBefore(): Promise<number> {
  const redlock: Named = new Redlock([new Redis(), new Redis5(), new Cluster([]), new Cluster5([])], { retryCount: 3 });
  redlock.on("error", (error) => console.log(error instanceof ExecutionError && error.attempts.length));
  const emitter: EventEmitter = redlock;
  emitter.setMaxListeners(20).off("error", console.log);
  void once(redlock, "error");
  let taken: Taken = await redlock.acquire(["a", "b"], 1_000);
  taken = await taken.extend(1_000);
  for (const attempt of (await taken.release()).attempts) console.log((await attempt).votesFor.size);
  return await redlock.using(["a"], 1_000, async (signal) => {
    if (signal.aborted) throw signal.error;
    return taken.expiration;
  });
}
`;

/** Only compiled, never run. Takes what another file of the project made, and makes the same. */
const EXCHANGE = `import { type FencedHold, type Lock, LockClient, LockError, MultiLock } from "holdfast";
import { problemOf } from "holdfast/http";
import Redlock, { Redlock as Named } from "holdfast/redlock";
import { createTestClient } from "holdfast/testing";

export const made = {
  client: createTestClient().client,
  take: (client: LockClient): Promise<FencedHold> => client.getFencedLock("a").lock(),
  group: (...locks: Lock[]): MultiLock => new MultiLock(...locks),
  redlock: new Redlock([]) as Named,
  status: (error: LockError): number | undefined => problemOf(error)?.status,
};
export type Made = typeof made;
`;

/** The files of a project that is half ES modules, half CommonJS. */
export const EXCHANGED: Readonly<Record<string, string>> = {
  "exchange.mts": `${EXCHANGE}
import { made as ofOther } from "./exchange.cjs";
export const same: Made = ofOther;
`,
  "exchange.cts": `${EXCHANGE}
export async function same(): Promise<Made> {
  return (await import("./exchange.mjs")).made;
}
`,
};

/** For bundlers: one file that loads the package in both ways. */
export const EXCHANGED_IN_ONE = `import { LockClient } from "holdfast";
import Redlock from "holdfast/redlock";
import required = require("holdfast");
import redlock = require("holdfast/redlock");

export const client: LockClient = required.LockClient.connect("redis://127.0.0.1:1");
export const back: required.LockClient = client;
export const one: Redlock = new redlock.default([]);
`;

/**
 * Only compiled, never run: what error codes tell the compiler. A `@ts-expect-error` fails if the line after it
 * compiles, and a `switch` without a branch for some code fails by `never`.
 */
export const NARROWED = `import {
  ClientClosedError, isLockError, LockError, LockLostError, LockTimeoutError, RedisUnavailableError,
  type LockErrorCode, type LossReason,
} from "holdfast";

/** One question after the other. */
export function ask(error: unknown): number | LossReason | unknown {
  if (!isLockError(error)) return error;
  if (isLockError(error, "UNAVAILABLE")) return error.cause;
  if (isLockError(error, "WAIT_TIMEOUT")) return error.waited;
  if (isLockError(error, "LOCK_LOST")) return error.reason;
  // @ts-expect-error: no case is left that has it
  error.waited;
  const rest: string = error.lockName;
  // @ts-expect-error: asked for above
  if (error.code === "UNAVAILABLE") return rest;
  return rest;
}

/** All codes, and the members of each class. */
export function tell(error: LockError): string {
  switch (error.code) {
    case "WAIT_TIMEOUT": return String(error.waited satisfies number);
    case "NOT_OWNER": return error.message;
    case "LOCK_LOST": return (error.reason satisfies LossReason) + (error.since satisfies number) + error.result;
    case "UPGRADE_REFUSED": return error.lockName;
    case "QUORUM": return String(error.votes satisfies number) + (error.errors satisfies readonly unknown[]).length;
    case "REPLICAS": return String(error.acknowledged + error.required satisfies number);
    case "UNAVAILABLE": return (error satisfies RedisUnavailableError).message;
    case "CLIENT_CLOSED": return (error satisfies ClientClosedError).message;
    case "UNSUPPORTED": return error.stack ?? "";
    case "WRONG_DATA": return String(error.cause);
    default: return error satisfies never;
  }
}

/** By the code alone, from each way to know that it is one of ours. */
export function narrow(error: unknown): number {
  if (isLockError(error) && error.code === "WAIT_TIMEOUT") return error.waited;
  if (error instanceof LockError && error.code === "LOCK_LOST") return error.since;
  if (error instanceof LockError) return tell(error).length;
  if (error instanceof LockTimeoutError) return error.waited;
  return 0;
}

/** The class says its code, and classes do not stand for each other. */
export const code: "WAIT_TIMEOUT" = new LockTimeoutError("a", 1).code;
export const known: LockErrorCode = new LockLostError("a", "taken", 0).code;
// @ts-expect-error: another class
export const other: ClientClosedError = new LockTimeoutError("a", 1);
// @ts-expect-error: no such code
isLockError(known, "TIMEOUT");

/** A code that is known at run time only. */
export const is = (error: unknown, which: LockErrorCode): boolean => isLockError(error, which);
export const same = (error: unknown, which?: LockErrorCode): boolean => isLockError(error, which);
`;
