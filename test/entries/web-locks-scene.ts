/** What the tests of the Web Locks API share: a server, clients, and locks that are held until their release. */
import { afterAll, afterEach, beforeAll } from "vitest";
import {
  createLockManager,
  type Lock,
  type LockManager,
  type LockOptions,
} from "../../src/entries/web-locks.js";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { deferred } from "../contract/helpers.js";
import { type RedisServer, startRedis, UNHURRIED } from "../support/index.js";

export interface Scene {
  readonly server: RedisServer;
  /** A client of its own, which is closed after the test. */
  client(options?: LockClientOptions): LockClient;
  manager(options?: LockClientOptions): LockManager;
  /** A name that no other test uses. */
  name(): string;
}

/** A scene for the tests of this file. */
export function webLocksScene(): Scene {
  let server: RedisServer;
  let last = 0;
  const clients: LockClient[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close({ timeout: 0 });
  });
  afterAll(() => server?.stop());
  const client = (options?: LockClientOptions) => {
    const made = new LockClient(server.connect(), { ...UNHURRIED, ...options });
    clients.push(made);
    return made;
  };
  return {
    get server() {
      return server;
    },
    client,
    manager: (options) => createLockManager(client(options)),
    name: () => `resource-${++last}`,
  };
}

export interface Held {
  readonly lock: Lock | null;
  /** The result or the error of the request. */
  readonly done: Promise<unknown>;
  /** Ends the callback, and waits until the lock is given back. */
  release(value?: unknown): Promise<unknown>;
}

/** Requests a lock and holds it; resolves when the callback was called. */
export async function hold(manager: LockManager, name: string, options: LockOptions = {}): Promise<Held> {
  const called = deferred<Lock | null>();
  const end = deferred<unknown>();
  const done = manager.request(name, options, (lock) => {
    called.resolve(lock);
    return end.promise;
  });
  done.catch(() => {});
  const lock = await Promise.race([called.promise, done.then(() => null)]);
  return {
    lock,
    done,
    release(value) {
      end.resolve(value);
      return done;
    },
  };
}

/** The name of a DOMException; for any other error, its class. */
export async function failureOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    (value) => {
      throw new Error(`expected a failure, got ${String(value)}`);
    },
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error(`rejected with ${String(error)}`);
  return error instanceof DOMException ? error.name : error.constructor.name;
}

export const never: Promise<never> = new Promise(() => {});
