import { expect, test } from "vitest";
import { fencedAcquire } from "../../src/scripts/generated.js";
import { LOCK, left, ME, mine, over, type States, TOMBSTONE, text, theirs, useBench } from "./bench.js";
import { each, refusal, scriptTable, WRONGTYPE } from "./table.js";

const bench = await useBench();

const COUNTER = "redisson_lock_token:{job}";
const keys = { lock: LOCK, tombstone: TOMBSTONE, counter: COUNTER };
const counter = (last: string): States => ({ [COUNTER]: text(last, -1) });
/** Far ahead of any server's clock in microseconds, but within what Redis can count. */
const AHEAD = "9223372036854775000";
const NEXT = "9223372036854775001";

scriptTable(bench, fencedAcquire, {
  keys,
  args: { owner: ME, lease: 60_000 },
  rows: {
    "{1, token}: one more than the last, when that is ahead of the clock": {
      given: counter(AHEAD),
      reply: [1, NEXT],
      after: { ...mine(60_000), ...counter(NEXT) },
    },
    "{1, token}: granted before, it keeps count, token and a longer TTL": {
      given: { ...mine(90_000, "12"), ...counter("41") },
      reply: [1, "41"],
    },
    "{1, token}: granted before, it keeps count and token, and raises the TTL": {
      given: { ...mine(30_000, "12"), ...counter("41") },
      reply: [1, "41"],
      after: { ...mine(60_000, "12"), ...counter("41") },
    },
    "{0, -1}: a refusal of a lock without TTL is no grant: the first number tells them apart": {
      given: { ...theirs(-1), ...counter("41") },
      reply: [0, -1],
    },
    "{0, pttl}: held by another; no token is drawn": {
      given: { ...theirs(50_000, "2"), ...counter("41") },
      reply: [0, left(50_000)],
    },
    ...each(
      "{2, 0}: a wire id that is over does not get %s",
      {
        "a free lock": {},
        "its own lock": { ...mine(20_000), ...counter("41") },
        "another's lock": { ...theirs(20_000), ...counter("41") },
      },
      (given: States) => ({ given: { ...given, ...over }, reply: [2, 0] }),
    ),
    ...each(
      "other data in the key of %s stays as it is",
      {
        "the lock": [{ [LOCK]: { value: ["theirs"], ttl: 60_000 } }, WRONGTYPE],
        "the counter": [{ [COUNTER]: { value: ["theirs"], ttl: 60_000 } }, WRONGTYPE],
        "the counter, as text": [counter("theirs"), refusal("not an integer")],
        "the counter, at its end": [counter("9223372036854775807"), refusal("overflow")],
      } as Record<string, [given: States, reply: unknown]>,
      ([given, reply]) => ({ given, reply }),
    ),
  },
});

const acquire = async () => {
  const reply = await bench.runner(fencedAcquire)(keys, { owner: ME, lease: 60_000 });
  return reply as [granted: number, token: string];
};

/** The server's clock in microseconds. */
const microseconds = async () => {
  const [seconds = 0, rest = 0] = await bench.redis.time();
  return BigInt(seconds) * 1_000_000n + BigInt(rest);
};

test.each<[string, States]>([
  ["the counter is gone", {}],
  ["the counter has fallen behind", counter("41")],
  ["the counter is negative", counter("-7")],
  ["the counter was deleted after an earlier run", mine(30_000)],
])(
  "fenced/acquire draws a token once, from the server's clock in microseconds, when %s",
  async (_, given) => {
    await bench.put(given);
    const earliest = await microseconds();
    const [granted, token] = await acquire();
    const latest = await microseconds();
    expect(granted).toBe(1);
    expect(token).toMatch(/^\d{16}$/);
    expect(BigInt(token) >= earliest && BigInt(token) <= latest).toBe(true);
    for (const _again of [1, 2]) {
      await bench.expect({ ...mine(60_000), ...counter(token) });
      expect(await acquire()).toEqual([1, token]);
    }
    expect(await bench.heard()).toEqual([]);
  },
);

test("the tokens of fenced/acquire rise with each grant, though the counter was lost, or counted on by Redisson", async () => {
  await bench.put({});
  const { redis } = bench;
  const tokens: bigint[] = [];
  for (const between of [
    async () => undefined,
    () => redis.del(COUNTER),
    () => redis.incrby(COUNTER, 60_000_000),
    async () => undefined,
  ]) {
    await between();
    tokens.push(BigInt((await acquire())[1]));
    await redis.del(LOCK);
  }
  expect(new Set(tokens).size).toBe(4);
  expect([...tokens].sort((a, b) => (a < b ? -1 : 1))).toEqual(tokens);
  expect((tokens[3] as bigint) - (tokens[2] as bigint)).toBe(1n);
});
