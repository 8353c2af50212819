/** Helpers of the contract tests: how calls fail, and which events come. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import type * as holdfast from "../../src/index.js";
import type { Lock, LockClient, LockEventName, LockEvents } from "../../src/index.js";
import { deferred } from "../support/deferred.js";
import { EVENTS } from "../support/event-names.js";
import { type Endpoint, failure, type RedisServer, redisCall, until, watch } from "../support/index.js";

export { deferred, failure, watch };

/** Passes a value that the types forbid. */
export const as = (value: unknown): never => value as never;

/** The payload of the next event with that name. */
export function nextEvent<E extends LockEventName>(client: LockClient, event: E): Promise<LockEvents[E]> {
  return new Promise((resolve) => client.once(event, resolve));
}

export interface SeenEvent {
  readonly name: LockEventName;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** Records all events from now on. */
export function recordEvents(client: LockClient): SeenEvent[] {
  const seen: SeenEvent[] = [];
  for (const name of EVENTS) client.on(name, (payload) => seen.push({ name, payload: { ...payload } }));
  return seen;
}

/** Starts a call for a lock that is held, and resolves when the call waits; `done` is the call. */
export async function untilWaiting<T>(
  client: LockClient,
  call: () => Promise<T>,
): Promise<{ done: Promise<T> }> {
  const waiting = nextEvent(client, "waiting");
  const done = call();
  const early = done.then((value) => {
    throw new Error(`the call did not wait, but gave ${String(value)}`);
  });
  watch(early);
  await Promise.race([waiting, early]);
  return { done };
}

/** How many holds the server counts on a lock, over all owners. */
export async function countOf(server: Endpoint, key: string): Promise<number> {
  const values = await redisCall(server, ["HVALS", key]);
  return (values as unknown[]).map(Number).reduce((sum, count) => sum + count, 0);
}

/** Takes a lock and gives it back, so that the extra work of a first call is done. */
export async function warmUp(lock: Lock): Promise<void> {
  await (await lock.lock()).unlock();
}

/** Like {@link warmUp}, repeated until it succeeds: on a busy machine a short time-out may be over first. */
export async function warmUpAtLast(lock: Lock): Promise<void> {
  await until("it is warm", () => warmUp(lock).then(() => true));
}

/** Creates a user with these rights, written as for ACL SETUSER with a space between two. */
export async function setUser(server: RedisServer, name: string, rights: string): Promise<void> {
  await server.call("ACL", "SETUSER", name, "reset", "on", ...rights.split(" "));
}

export interface Connection {
  readonly id: string;
  readonly subscribed: number;
}

/** The clients of a server, without the one that asks. */
export async function connectionsOf(server: Endpoint): Promise<Connection[]> {
  const text = String(await redisCall(server, ["CLIENT", "LIST"]));
  return text
    .split("\n")
    .filter((line) => line !== "" && !/ cmd=client(\|list)? /.test(line))
    .map((line) => {
      const field = (name: string) => new RegExp(`\\b${name}=(\\S*)`).exec(line)?.[1] ?? "";
      return { id: field("id"), subscribed: Number(field("sub")) + Number(field("ssub") || 0) };
    });
}

/** The clients of a server that are not in `before`, so that a connection that is just closing is not counted. */
export async function connectionsSince(
  before: readonly Connection[],
  server: Endpoint,
): Promise<Connection[]> {
  const known = new Set(before.map(({ id }) => id));
  return (await connectionsOf(server)).filter(({ id }) => !known.has(id));
}

const DIST = new URL("../../dist/", import.meta.url);

/** Whether the package is built; `npm test` builds it first. */
export const isBuilt: boolean =
  existsSync(new URL("index.js", DIST)) && existsSync(new URL("index.cjs", DIST));

export type Copy = typeof holdfast;

/** A second copy of the library in this process. */
export async function loadEsm(): Promise<Copy> {
  return (await import(/* @vite-ignore */ new URL("index.js", DIST).href)) as Copy;
}

export function loadCjs(): Copy {
  return createRequire(import.meta.url)(new URL("index.cjs", DIST).pathname) as Copy;
}

/** For `import` in a child process. */
export const distUrl: string = new URL("index.js", DIST).href;
