/** Takes a lock from whoever holds it, for an operator. */
import type { LockClient, LockInfo } from "../../index.js";
import type { Feed } from "./feed.js";
import { json, text } from "./responses.js";
import { hasOthers } from "./shown.js";

/** What an operator did. */
export interface Unlocked {
  /** The name of the lock, without the client's prefix. */
  readonly name: string;
  /** The lock as it was before. */
  readonly lock: LockInfo;
  /** The request of the operator, which shows who it was. */
  readonly request: Request;
}

export interface Unlocking {
  readonly client: LockClient;
  readonly feed: Feed;
  readonly onUnlock: ((unlocked: Unlocked) => void | Promise<void>) | undefined;
}

/** Characters of a body: a name has 512 bytes at most, and an owner 60. */
const LONGEST = 65_536;

/**
 * Answers `{ unlocked: boolean }`: false for a lock that is free. 409 if the lock has other holders than `ownerIds`, if
 * these are given.
 */
export async function unlock({ client, feed, onUnlock }: Unlocking, request: Request): Promise<Response> {
  const asked = await readBody(request);
  if (!asked) return text(400, 'The body has to be { "name": string, "ownerIds"?: string[] }.');
  const { name, ownerIds } = asked;
  let lock: LockInfo | null;
  try {
    lock = await client.inspect(name);
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return text(400, error.message);
    throw error;
  }
  if (!lock) return json(200, { unlocked: false });
  if (ownerIds && hasOthers(lock, ownerIds)) return text(409, "Others hold the lock by now.");
  const unlocked = await feed.unlock(lock);
  if (unlocked) await onUnlock?.({ name, lock, request });
  return json(200, { unlocked });
}

async function readBody(request: Request): Promise<{ name: string; ownerIds?: string[] } | undefined> {
  const body = await textOf(request);
  try {
    const { name, ownerIds } = JSON.parse(body ?? "");
    if (typeof name !== "string") return undefined;
    if (ownerIds === undefined) return { name };
    if (!Array.isArray(ownerIds) || ownerIds.some((id) => typeof id !== "string")) return undefined;
    return { name, ownerIds };
  } catch {
    return undefined;
  }
}

/** The text of a body; undefined if it is too long. */
async function textOf({ body }: Request): Promise<string | undefined> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > LONGEST) return undefined;
  }
  return text;
}
