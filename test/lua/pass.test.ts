import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fencedPass, lockPass, writePass } from "../../src/scripts/generated.js";
import type { ArgumentValues, KeyValues, Script } from "../../src/scripts/script.js";
import {
  type Bench,
  CHANNEL,
  expectTtl,
  forms,
  held,
  LOCK,
  later,
  ME,
  MOST,
  OTHER,
  publishers,
  type States,
  scored,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";
import { CHANNEL as BOTH_SIDES, holds, WRITERS, writing } from "./sides.js";

const SUCCESSOR = "6e3814a1-e847-452b-a982-45baf93a1df2:9";
const SUCCESSOR_TOMBSTONE = "redisson_unlock_latch:{job}:6e3814a1-e847-452b-a982-45baf93a1df2:9";
const COUNTER = "redisson_lock_token:{job}";
const LAST = "9223372036854775000";
const TOKEN = "9223372036854775001";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL, BOTH_SIDES]);
});
afterAll(() => bench?.stop());

/** What tells the kinds apart. */
interface Kind {
  readonly script: Script<KeyValues, ArgumentValues>;
  readonly channel: string;
  readonly keys: KeyValues;
  readonly args: ArgumentValues;
  readonly message: "0" | "1";
  /** The lock in an owner's hand. */
  readonly lock: (owner: string, ttl: number) => States;
  /** What is beside the lock before, and after the successor has it. */
  readonly beside: States;
  readonly granted: States;
  /** Likewise when others were asked and nobody wanted it, if that is not the same. */
  readonly unwanted?: States;
  /** What is beside it when others go before the successor. */
  readonly passedBy: States;
  readonly token: string | number;
}

const lock = (owner: string, ttl: number) => ({ [LOCK]: held({ [owner]: "1" }, ttl) });

const kinds: Record<string, Kind> = {
  lock: {
    script: lockPass as unknown as Kind["script"],
    channel: CHANNEL,
    keys: {},
    args: {},
    message: "0",
    lock,
    beside: {},
    granted: {},
    passedBy: {},
    token: 0,
  },
  fenced: {
    script: fencedPass as unknown as Kind["script"],
    channel: CHANNEL,
    keys: { counter: COUNTER },
    args: {},
    message: "0",
    lock,
    beside: { [COUNTER]: text(LAST, -1) },
    granted: { [COUNTER]: text(TOKEN, -1) },
    passedBy: { [COUNTER]: text(LAST, -1) },
    token: TOKEN,
  },
  write: {
    script: writePass as unknown as Kind["script"],
    channel: BOTH_SIDES,
    keys: { writers: WRITERS },
    args: { field: `${ME}:write`, successorField: `${SUCCESSOR}:write`, patience: 20_000 },
    message: "1",
    lock: (owner, ttl) => writing(ttl, "1", [], owner),
    beside: { [WRITERS]: scored({ [SUCCESSOR]: 9_000, [OTHER]: 9_000 }, 9_000) },
    granted: { [WRITERS]: scored({ [OTHER]: 9_000 }, 9_000) },
    unwanted: { [WRITERS]: scored({ [OTHER]: 9_000 }, 20_000) },
    passedBy: { [WRITERS]: scored({ [SUCCESSOR]: later(20_000), [OTHER]: 9_000 }, 20_000) },
    token: 0,
  },
};

const cases = Object.entries(kinds).flatMap(([name, kind]) =>
  forms(kind.script).map((form) => ({ title: `${name}/pass, ${form}`, kind, form })),
);

describe.each(cases)("$title", ({ kind, form }) => {
  const { channel, message, beside, granted, passedBy, token } = kind;
  const mine = kind.lock(ME, 30_000);
  const theirs = kind.lock(SUCCESSOR, 20_000);
  const over = { [TOMBSTONE]: text("1", 40_000) };
  const keys = {
    lock: LOCK,
    channel,
    tombstone: TOMBSTONE,
    successorTombstone: SUCCESSOR_TOMBSTONE,
    ...kind.keys,
  };
  const args = (more = {}) => ({
    ...{
      owner: ME,
      successor: SUCCESSOR,
      lease: 20_000,
      ask: 0,
      own: 0,
      tombstoneTtl: 40_000,
      publish: "PUBLISH",
    },
    ...kind.args,
    ...more,
  });
  const pass = (more = {}, redis = bench.redis) => bench.runner(kind.script, form, redis)(keys, args(more));
  const said = (publish: "PUBLISH" | "SPUBLISH" = "PUBLISH") => [
    { command: publish, channel, payload: message },
  ];

  test("{1, 1}: the successor has it, and nobody is told", async () => {
    await bench.put({ ...mine, ...beside });
    expect(await pass()).toEqual([1, 1, token]);
    await bench.expect({ ...theirs, ...over, ...granted });
    expect(await bench.heard()).toEqual([]);
  });

  test("{1, 1}: sent again it does nothing more, but raises the TTL", async () => {
    await bench.put({ ...mine, ...beside });
    await pass();
    expect(await pass({ ask: 1, lease: 10_000, tombstoneTtl: 90_000 })).toEqual([1, 1, token]);
    await bench.expect({ ...theirs, ...over, ...granted });
    expect(await pass({ lease: 60_000 })).toEqual([1, 1, token]);
    await bench.expect({ ...kind.lock(SUCCESSOR, 60_000), ...over, ...granted });
    expect(await bench.heard()).toEqual([]);
  });

  test.each(publishers)("{1, 0}: others who hear of it by %s go first", async (publish) => {
    await bench.put({ ...mine, ...beside });
    expect(await pass({ ask: 1, publish })).toEqual([1, 0, 1]);
    await bench.expect({ ...over, ...passedBy });
    expect(await bench.heard()).toEqual(said(publish));
    // Sent again: somebody else may have it, and keeps it.
    await bench.put({ ...kind.lock(OTHER, 30_000), ...over });
    expect(await pass({ ask: 1, publish })).toEqual([1, 0, 0]);
    await bench.expect({ ...kind.lock(OTHER, 30_000), ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test.each([1, 2])("{1, 1}: nobody hears of it but this process itself (%i at most)", async (own) => {
    await bench.put({ ...mine, ...beside });
    expect(await pass({ ask: 1, own })).toEqual([1, 1, token]);
    await bench.expect({ ...theirs, ...over, ...(kind.unwanted ?? granted) });
    expect(await bench.heard()).toEqual(said());
  });

  test.each([
    ["asked", 1, 0, 1],
    ["not asked", 0, 0, 1],
    ["asked, but not there", 1, 1, 0],
  ])("{1, 0}: a successor that is over gets nothing (others %s)", async (_, ask, own, others) => {
    const ended = { [SUCCESSOR_TOMBSTONE]: text("1", 5_000) };
    await bench.put({ ...mine, ...beside, ...ended });
    expect(await pass({ ask, own })).toEqual([1, 0, others]);
    await bench.expect({ ...over, ...beside, ...ended });
    expect(await bench.heard()).toEqual(said());
  });

  test("{0} and {-1}: the giver does not have it", async () => {
    await bench.put({});
    expect(await pass()).toEqual([0, 0, 0]);
    await bench.expect({});
    await bench.put(kind.lock(OTHER, 30_000));
    expect(await pass()).toEqual([-1, 0, 0]);
    await bench.expect(kind.lock(OTHER, 30_000));
    expect(await bench.heard()).toEqual([]);
  });

  test("the largest numbers survive as text", async () => {
    await bench.put({ ...mine, ...beside });
    expect(await pass({ lease: MOST, tombstoneTtl: MOST })).toEqual([1, 1, token]);
    await bench.expect({ ...kind.lock(SUCCESSOR, MOST), [TOMBSTONE]: text("1", MOST), ...granted });
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(pass()).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test("without memory it works as ever", async () => {
    await bench.put({ ...mine, ...beside });
    await bench.outOfMemory(async () => {
      expect(await pass()).toEqual([1, 1, token]);
    });
    await bench.expect({ ...theirs, ...over, ...granted });
  });

  test("whoever may not announce cannot count others, and lets them go first", async () => {
    const mute = await bench.withoutChannels();
    await bench.put({ ...mine, ...beside });
    expect(await pass({ ask: 1 }, mute)).toEqual([1, 0, 1]);
    await bench.expect({ ...over, ...passedBy });
  });

  test("a TTL that is refused leaves no lock without one", async () => {
    await bench.put({ ...mine, ...beside });
    await bench.expectRefusal("pexpire", kind.script, form, keys, args());
    expect(await bench.redis.exists(LOCK)).toBe(0);
  });
});

describe.each(forms(writePass))("write/pass, %s", (form) => {
  const args = (ask: number, patience: number) => ({
    ...{ owner: ME, field: `${ME}:write`, successor: SUCCESSOR, successorField: `${SUCCESSOR}:write` },
    ...{ lease: 20_000, ask, own: 1, patience, tombstoneTtl: 40_000, publish: "PUBLISH" },
  });
  const keys = {
    lock: LOCK,
    channel: BOTH_SIDES,
    tombstone: TOMBSTONE,
    successorTombstone: SUCCESSOR_TOMBSTONE,
    writers: WRITERS,
  };

  test("{1, 0}: a writer that reads goes on as a reader, and its successor gets nothing", async () => {
    await bench.put(writing(30_000, "1", [25_000]));
    expect(await bench.runner(writePass, form)(keys, args(0, 0))).toEqual([1, 0, 0]);
    await bench.expect({
      [LOCK]: held({ mode: "read", [ME]: "1" }, 25_000),
      ...holds(ME, [25_000]),
      [TOMBSTONE]: text("1", 40_000),
    });
    expect(await bench.heard()).toHaveLength(1);
  });

  test("{1, 0}: a count of two digits is given back at once; a successor without patience is not advertised", async () => {
    const others = { [WRITERS]: scored({ [OTHER]: 9_000 }, 9_000) };
    await bench.put({ ...writing(30_000, "12"), ...others });
    expect(await bench.runner(writePass, form)(keys, { ...args(1, 0), own: 0 })).toEqual([1, 0, 1]);
    await bench.expect({ [TOMBSTONE]: text("1", 40_000), ...others });
  });

  test.each(["zrem", "zadd"])("who may not %s is told so", async (command) => {
    await bench.put(writing(30_000));
    await bench.expectRefusal(command, writePass, form, keys, args(1, 20_000));
  });
});

test("a fenced successor's token is at least the server's clock", async () => {
  const [seconds = 0] = (await bench.redis.time()).map(Number);
  await bench.put(lock(ME, 30_000));
  const keys = {
    lock: LOCK,
    channel: CHANNEL,
    tombstone: TOMBSTONE,
    successorTombstone: SUCCESSOR_TOMBSTONE,
  };
  const args = {
    owner: ME,
    successor: SUCCESSOR,
    lease: 20_000,
    ask: 0,
    own: 0,
    tombstoneTtl: 40_000,
    publish: "PUBLISH",
  };
  const [form = "modern"] = forms(fencedPass);
  const reply = await bench.runner(fencedPass, form)({ ...keys, counter: COUNTER }, args);
  const [, , token] = reply as [number, number, string];
  expect(Number(token)).toBeGreaterThanOrEqual(seconds * 1e6);
  expectTtl(await bench.redis.pttl(COUNTER), -1);
});
