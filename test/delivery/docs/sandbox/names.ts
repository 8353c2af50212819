/**
 * The names that the pages take for granted, in place of the reader's own program. They are globals around each block; a
 * block's own declarations win.
 */
import { createServer, type Server } from "node:http";
import { LockClient, type Owner } from "../../../../src/index.js";
import { Redis } from "./ioredis.js";
import { servers } from "./servers.js";

export const redis: Redis = new Redis();
export const client: LockClient = new LockClient(redis);
/** A client in another process of the reader. */
export const other: LockClient = new LockClient(new Redis());
/** One client for each of three masters. */
export const clients: LockClient[] = servers.masters.map((port) => LockClient.connect({ port }));
export const lock: ReturnType<LockClient["getLock"]> = client.getLock("lock");
export const owner: Owner = client.newOwner();
export const password: string = servers.password;

export const signal: AbortSignal = new AbortController().signal;
export const wait = 1_000;
export const lease = 5_000;

/** A table with one row, which the locks of the pages protect. */
let count = 5;
export const readCount = async (): Promise<number> => count;
export const writeCount = async (next: number): Promise<void> => {
  count = next;
};

/** Work that takes a moment, and accepts any arguments. */
export const work = async (..._with: unknown[]): Promise<string> => {
  await new Promise((resolve) => setImmediate(resolve));
  return "done";
};
export const book: typeof work = work;
export const move: typeof work = work;
export const read: typeof work = work;
export const sellOne: typeof work = work;
export const update: typeof work = work;
export const write: typeof work = work;
/** Where the reader's program logs what happened. */
export const log = (..._told: unknown[]): void => {};
export const metric: typeof log = log;
/** The reader's own server for requests. */
export const server: Server = createServer();
/** Sends a request to a listening server; returns the status of the answer. */
export const post = async (to: Server, path: string): Promise<number> => {
  const address = to.address();
  if (typeof address !== "object" || !address) throw new Error("it does not listen");
  return (await fetch(`http://localhost:${address.port}${path}`, { method: "POST" })).status;
};
