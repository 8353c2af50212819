/** What the tests of the Web Locks API share: a server, clients, and locks that are held until their release. */
import { expect } from "vitest";
import {
  createLockManager,
  type Lock,
  type LockManager,
  type LockMode,
  type LockOptions,
} from "../../src/entries/web-locks.js";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { deferred } from "../contract/helpers.js";
import { forFile, forTest, type RedisServer, startRedis, UNHURRIED } from "../support/index.js";

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
  const release = (value?: unknown) => {
    end.resolve(value);
    return done;
  };
  return { lock, done, release };
}

/** A client with its manager, and a name that no other test uses. */
export interface Party {
  readonly client: LockClient;
  readonly manager: LockManager;
  readonly name: string;
  hold(options?: LockOptions): Promise<Held>;
  request<T>(options: LockOptions, callback: (lock: Lock | null) => T): Promise<Awaited<T>>;
  /** Whether a request with `ifAvailable` is granted. */
  isFree(mode?: LockMode): Promise<boolean>;
  /** The modes of what is held, and of what is pending. */
  modes(): Promise<[held: string, pending: string]>;
}

let names = 0;
export const newName = (): string => `resource-${++names}`;

/** A server for the tests of this file, and parties on it, each with a client of its own. */
export async function webLocksScene(): Promise<{
  readonly server: RedisServer;
  party(name?: string, options?: LockClientOptions): Party;
}> {
  const server = await forFile(startRedis());
  const party = (name = newName(), options: LockClientOptions = {}): Party => {
    const client = forTest(new LockClient(server.connect(), { ...UNHURRIED, ...options }));
    const manager = createLockManager(client);
    return {
      client,
      manager,
      name,
      hold: (given) => hold(manager, name, given),
      request: (given, callback) => manager.request(name, given, callback),
      isFree: (mode = "exclusive") =>
        manager.request(name, { mode, ifAvailable: true }, (lock) => lock !== null),
      async modes() {
        const { held, pending } = await manager.query();
        const told = (infos: typeof held) => infos.map(({ mode }) => mode?.[0]).join("");
        return [told(held), told(pending)];
      },
    };
  };
  return { server, party };
}

/** The name of a DOMException; for any other error, its class. */
export async function failureOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    (value) => expect.unreachable(`expected a failure, got ${String(value)}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error(`rejected with ${String(error)}`);
  return error instanceof DOMException ? error.name : error.constructor.name;
}

export const never: Promise<never> = new Promise(() => {});

/** Another turn of the event loop. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
