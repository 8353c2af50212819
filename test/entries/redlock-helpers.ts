/** What the tests of redlock's face share: Redlock objects with connections of their own, and the state of masters. */
import { Redis as Redis5 } from "ioredis5";
import { expect, onTestFinished } from "vitest";
import { ExecutionError, Redlock, ResourceLockedError, type Settings } from "../../src/entries/redlock.js";
import { type RedisServer, until } from "../support/index.js";

/** Milliseconds, longer than any test. */
export const LONG = 600_000;
/** A wait longer than any test; a poll would come too late. */
export const PATIENT: Partial<Settings> = { retryCount: 1, retryDelay: LONG, retryJitter: 0 };
export const ONCE: Partial<Settings> = { retryCount: 0 };

/** A Redlock object with its own connections, as in another process; ended after the test. */
export function newRedlock(
  servers: readonly RedisServer[],
  settings: Partial<Settings> = {},
  version: 5 | 6 = 6,
): Redlock {
  const connections = servers.map((server) =>
    version === 5 ? new Redis5(server.port).on("error", () => {}) : server.connect(),
  );
  const redlock = new Redlock(connections, settings);
  onTestFinished(() => redlock.quit());
  return redlock;
}

/** The error that the call rejects with. */
export async function executionError(call: Promise<unknown>): Promise<ExecutionError> {
  const error = await call.then(
    (value) => new Error(`it gave ${String(value)}`),
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(ExecutionError);
  return error as ExecutionError;
}

/** For each attempt, the names of the errors that voted against. */
export async function votesAgainst({ attempts }: Pick<ExecutionError, "attempts">): Promise<string[][]> {
  const stats = await Promise.all(attempts);
  return stats.map(({ votesAgainst }) => [...votesAgainst.values()].map(({ name }) => name));
}

export const LOCKED: string = new ResourceLockedError().name;

/** The replies of all servers, as numbers, to a command about that key. */
export async function onAll(
  servers: readonly RedisServer[],
  command: string,
  key: string,
): Promise<number[]> {
  return (await Promise.all(servers.map((server) => server.call(command, key)))).map(Number);
}

/** The number of servers that have the key. */
export async function countHeld(servers: readonly RedisServer[], name: string): Promise<number> {
  return (await onAll(servers, "EXISTS", name)).reduce((sum, one) => sum + one, 0);
}

export async function untilFree(servers: readonly RedisServer[], ...names: string[]): Promise<void> {
  for (const name of names)
    await until(`${name} is free everywhere`, async () => (await countHeld(servers, name)) === 0);
}

/** Whether a waiter listens for the release of that name, on at least one of the servers. */
export async function isAwaited(servers: readonly RedisServer[], name: string): Promise<boolean> {
  const channel = `redisson_lock__channel:{${name}}`;
  const listening = await Promise.all(
    servers.map((server) => server.call("PUBSUB", "NUMSUB", channel) as Promise<[string, number]>),
  );
  return listening.some(([, count]) => Number(count) > 0);
}

/** Resolves when {@link isAwaited}. */
export async function untilAwaited(servers: readonly RedisServer[], name: string): Promise<void> {
  await until(`somebody waits for ${name}`, () => isAwaited(servers, name));
}
