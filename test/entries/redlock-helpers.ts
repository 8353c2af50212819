/** What the tests of redlock's face share: Redlock objects with connections of their own, masters, and their state. */
import { Redis as Redis5 } from "ioredis5";
import { afterEach, expect, onTestFinished } from "vitest";
import { ExecutionError, Redlock, ResourceLockedError, type Settings } from "../../src/entries/redlock.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, type RedisServer, redisCall, startRedis, until } from "../support/index.js";

/** Milliseconds, longer than any test. */
export const LONG = 600_000;
/** A wait longer than any test; a poll would come too late. */
export const PATIENT: Partial<Settings> = { retryCount: 1, retryDelay: LONG, retryJitter: 0 };
export const ONCE: Partial<Settings> = { retryCount: 0 };

/**
 * Independent masters for the tests of one file. Masters that a test has stopped or killed are up again for the next
 * test. The file fails if a promise rejects without a handler.
 */
export function useMasters(count: number): Promise<readonly RedisServer[]> {
  failOnUnhandledRejections();
  const servers: RedisServer[] = [];
  afterEach(async () => {
    await Promise.all(
      servers.map(async (server) => {
        server.resume();
        await redisCall(server, ["PING"], 2_000).catch(() => server.restart());
      }),
    );
  });
  const starting = async () => {
    const server = await forFile(startRedis());
    servers.push(server);
    return server;
  };
  return Promise.all(Array.from({ length: count }, starting));
}

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
