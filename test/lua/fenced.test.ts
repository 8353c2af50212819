/** The scripts of a lock whose grants have fencing tokens. */
import { expect, test } from "vitest";
import { fencedPass, fencedTake } from "../../src/scripts/generated.js";
import {
  announced,
  buried,
  CHANNEL,
  held,
  LOCK,
  left,
  ME,
  mine,
  OTHER,
  over,
  type States,
  SUCCESSOR,
  SUCCESSOR_TOMBSTONE,
  successorOver,
  TOMBSTONE,
  text,
  theirs,
  useBench,
} from "./bench.js";
import { each, refusal, scriptTable, WRONGTYPE } from "./table.js";

const bench = await useBench();

const COUNTER = "redisson_lock_token:{job}";
const keys = { lock: LOCK, tombstone: TOMBSTONE, counter: COUNTER };
const counter = (last: string): States => ({ [COUNTER]: text(last, -1) });
/** Far ahead of any server's clock in microseconds, but within what Redis can count. */
const AHEAD = "9223372036854775000";
const NEXT = "9223372036854775001";

scriptTable(bench, fencedTake, {
  keys,
  args: { owner: ME, lease: 60_000 },
  rows: {
    "{1, token}: one more than the last, when that is ahead of the clock": {
      given: counter(AHEAD),
      reply: [1, NEXT],
      after: { ...mine(60_000), ...counter(NEXT) },
    },
    "{1, token}: granted before, it keeps count and token, and raises the TTL": {
      given: { ...mine(30_000, "12"), ...counter("41") },
      reply: [1, "41"],
      after: { ...mine(60_000, "12"), ...counter("41") },
    },
    "{0, pttl, holder}: held by another; no token is drawn": {
      given: { ...theirs(50_000, "2"), ...counter("41") },
      reply: [0, left(50_000), OTHER],
    },
    "{2}: a wire id that is over does not get a free lock, and draws no token": {
      given: { ...counter("41"), ...over },
      reply: [2],
    },
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

const handedOver = { ...theirs(20_000, "1", SUCCESSOR), ...over };

scriptTable(bench, fencedPass, {
  keys: { ...keys, channel: CHANNEL, successorTombstone: SUCCESSOR_TOMBSTONE },
  args: { owner: ME, successor: SUCCESSOR, lease: 20_000, tombstoneTtl: 40_000, publish: "PUBLISH" },
  counts: true,
  thrifty: true,
  tolerates: "hdel hexists pexpire incr time",
  rows: {
    "{0, 1, 1, token}: the successor has it, by the next token, and nobody is told": {
      given: { ...mine(30_000, "2"), ...counter(AHEAD) },
      reply: [0, 1, 1, NEXT],
      after: { ...handedOver, ...counter(NEXT) },
    },
    "{0, -1, 1, token}: the successor that has it by a try of its own has it for its whole lease from now [B292]":
      {
        given: { ...theirs(5_000, "1", SUCCESSOR), ...counter("41") },
        reply: [0, -1, 1, "41"],
        after: { ...theirs(20_000, "1", SUCCESSOR), ...buried(-1), ...counter("41") },
      },
    "{0, 1, 0}: sent again when another has it": {
      given: { ...theirs(30_000), ...over, ...counter("41") },
      reply: [0, 1, 0],
    },
    "{heard, 1, 0}: a successor that is over gets neither lock nor token": {
      given: { ...mine(30_000), ...successorOver, ...counter("41") },
      reply: [1, 1, 0],
      after: { ...over, ...successorOver, ...counter("41") },
      heard: announced("0"),
    },
    ...each(
      "{heard, 1, 0}: given back, where there is no token for the successor: the counter %s [B124]",
      {
        "holds other data": held({ theirs: "1" }, -1),
        "holds a text": text("theirs", -1),
        "is at its end": text("9223372036854775807", -1),
      },
      (state) => ({
        given: { ...mine(30_000), [COUNTER]: state },
        reply: [1, 1, 0],
        after: { [COUNTER]: state, ...over },
        heard: announced("0"),
      }),
    ),
    "{heard, 1, 0}: given back where the successor's TTL is refused": {
      given: { ...mine(30_000), ...counter(AHEAD) },
      mayNot: "pexpire",
      reply: [1, 1, 0],
      after: { ...over, ...counter(NEXT) },
      heard: announced("0"),
    },
  },
});

/** The server's clock in microseconds. */
const microseconds = async () => {
  const [seconds = 0, rest = 0] = await bench.redis.time();
  return BigInt(seconds) * 1_000_000n + BigInt(rest);
};

const take = async () =>
  (await bench.runner(fencedTake)(keys, { owner: ME, lease: 60_000 })) as [granted: number, token: string];

/** ME gives the lock to the successor. */
const pass = async () => {
  const inAll = { ...keys, channel: CHANNEL, successorTombstone: SUCCESSOR_TOMBSTONE };
  const args = { owner: ME, successor: SUCCESSOR, lease: 20_000, tombstoneTtl: 40_000, publish: "PUBLISH" };
  const [, , has, token] = (await bench.runner(fencedPass)(inAll, args)) as [0, 1, 1, string];
  return [has, token] as [granted: number, token: string];
};

test.each<[string, States, typeof take, States]>([
  ["the counter is gone", {}, take, mine(60_000)],
  ["the counter is negative", counter("-7"), take, mine(60_000)],
  ["the counter was deleted after an earlier run", mine(30_000), take, mine(60_000)],
  ["the successor gets the lock", mine(30_000), pass, handedOver],
])(
  "a token is drawn once, from the server's clock in microseconds, when %s",
  async (_, given, way, after) => {
    await bench.put(given);
    const earliest = await microseconds();
    const [granted, token] = await way();
    const latest = await microseconds();
    expect(granted).toBe(1);
    expect(token).toMatch(/^\d{16}$/);
    expect(BigInt(token) >= earliest && BigInt(token) <= latest).toBe(true);
    for (const _again of [1, 2]) {
      await bench.expect({ ...after, ...counter(token) });
      expect(await way()).toEqual([1, token]);
    }
    expect(await bench.heard()).toEqual([]);
  },
);
