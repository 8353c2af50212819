/**
 * The whole state of keys, for tests that check what is on the server and not only what a client says. One script
 * reads each key, so that the key cannot change or expire between the reads of its type and its value.
 */
import { type UntilOptions, until } from "./until.js";

export type KeyState =
  | { readonly type: "none"; readonly value: null; readonly ttl: -2 }
  | { readonly type: "string"; readonly value: string; readonly ttl: number }
  | { readonly type: "hash"; readonly value: Record<string, string>; readonly ttl: number }
  | { readonly type: "list"; readonly value: string[]; readonly ttl: number }
  /** The members, sorted. */
  | { readonly type: "set"; readonly value: string[]; readonly ttl: number }
  /** The members, in the order of their scores. */
  | { readonly type: "zset"; readonly value: [member: string, score: number][]; readonly ttl: number };

/** The part of a Redis or Cluster of any ioredis version that is needed here. */
export interface EvalClient {
  eval(script: string, numberOfKeys: number, ...keys: string[]): Promise<unknown>;
}

export interface ScanClient extends EvalClient {
  scan(cursor: string, countToken: "COUNT", count: number): Promise<[cursor: string, keys: string[]]>;
}

/** A cluster: every master is scanned. */
export interface ScanCluster extends EvalClient {
  nodes(role: "master"): ScanClient[];
}

const READ = `-- a test looks
local key = KEYS[1]
local kind = redis.call('type', key).ok
local read = {
  string = { 'get', key }, hash = { 'hgetall', key }, list = { 'lrange', key, 0, -1 },
  set = { 'smembers', key }, zset = { 'zrange', key, 0, -1, 'withscores' },
}
local value = read[kind] and redis.call(unpack(read[kind])) or false
return { kind, value, redis.call('pttl', key) }`;

/** Type, whole value and remaining milliseconds of a key (-1: it has no TTL, -2: there is no such key). */
export async function keyState(redis: EvalClient, key: string): Promise<KeyState> {
  const reply = await redis.eval(READ, 1, key);
  if (!Array.isArray(reply)) throw new Error(`unexpected reply of the script: ${String(reply)}`);
  const [type, raw, pttl]: unknown[] = reply;
  const ttl = Number(pttl);
  const flat = Array.isArray(raw) ? raw.map(String) : [];
  if (type === "none") return { type, value: null, ttl: -2 };
  if (type === "string") return { type, value: String(raw), ttl };
  if (type === "hash") return { type, value: Object.fromEntries(pairs(flat)), ttl };
  if (type === "list") return { type, value: flat, ttl };
  if (type === "set") return { type, value: flat.sort(), ttl };
  if (type === "zset")
    return { type, value: pairs(flat).map(([member, score]) => [member, Number(score)]), ttl };
  throw new Error(`${key} is a ${String(type)}, which this helper does not read`);
}

function pairs(flat: readonly string[]): [string, string][] {
  const result: [string, string][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) result.push([flat[i] ?? "", flat[i + 1] ?? ""]);
  return result;
}

/** All keys of the server, or of all masters of the cluster, sorted by name; with `part`, only names that contain it. */
export async function allKeys(redis: ScanClient | ScanCluster, part = ""): Promise<Map<string, KeyState>> {
  const nodes = "nodes" in redis ? redis.nodes("master") : [redis];
  const keys = new Set((await Promise.all(nodes.map(scanAll))).flat());
  const states = new Map<string, KeyState>();
  for (const key of [...keys].filter((each) => each.includes(part)).sort()) {
    const state = await keyState(redis, key);
    if (state.type !== "none") states.set(key, state); // it may have expired since the scan
  }
  return states;
}

async function scanAll(node: ScanClient): Promise<string[]> {
  const keys: string[] = [];
  let cursor = "0";
  do {
    const [next, found] = await node.scan(cursor, "COUNT", 1_000);
    keys.push(...found);
    cursor = next;
  } while (cursor !== "0");
  return keys;
}

/** Resolves when the key is gone. */
export async function untilGone(redis: EvalClient, key: string, options: UntilOptions = {}): Promise<void> {
  await until(`${key} is gone`, async () => (await keyState(redis, key)).type === "none", options);
}

/** True for traces of ended calls, such as tombstones; they expire by themselves and exclude no owner. */
export const isMarker = (key: string): boolean => /^(redisson_unlock_latch|holdfast_over):/.test(key);
