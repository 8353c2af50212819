import { expect, test } from "vitest";
import { fencedOldPass, lockPass, writeOldPass } from "../../src/scripts/generated.js";
import {
  type Announcement,
  announced,
  CHANNEL,
  held,
  LOCK,
  later,
  ME,
  OTHER,
  over,
  type States,
  scored,
  TOMBSTONE,
  text,
  useBench,
} from "./bench.js";
import { CHANNEL as BOTH_SIDES, reading, announced as toldBoth, WRITERS, writing } from "./sides.js";
import { each, scriptTable } from "./table.js";

const SUCCESSOR = "6e3814a1-e847-452b-a982-45baf93a1df2:9";
const SUCCESSOR_TOMBSTONE = "redisson_unlock_latch:{job}:6e3814a1-e847-452b-a982-45baf93a1df2:9";
const COUNTER = "redisson_lock_token:{job}";
const LAST = "9223372036854775000";
const TOKEN = "9223372036854775001";

const bench = await useBench();

const lock = (owner: string, ttl: number): States => ({ [LOCK]: held({ [owner]: "1" }, ttl) });

const KEYS = { lock: LOCK, tombstone: TOMBSTONE, successorTombstone: SUCCESSOR_TOMBSTONE };
const ARGS = {
  owner: ME,
  successor: SUCCESSOR,
  lease: 20_000,
  ask: 0,
  own: 0,
  tombstoneTtl: 40_000,
  publish: "PUBLISH",
};
const WRITE_KEYS = { ...KEYS, channel: BOTH_SIDES, writers: WRITERS };
const WRITE_ARGS = { ...ARGS, field: `${ME}:write`, successorField: `${SUCCESSOR}:write`, aliveFor: 20_000 };

/** The differences between the kinds. */
interface Kind {
  /** The lock, held by an owner. */
  readonly lock: (owner: string, ttl: number) => States;
  /** The messages for the waiters. */
  readonly said: Announcement[];
  /** The keys beside the lock before the hand-over, and after the successor has the lock. */
  readonly beside: States;
  readonly granted: States;
  /** The same after others were asked and none wanted the lock, if that differs. */
  readonly unwanted?: States;
  /** The keys beside the lock when others go before the successor. */
  readonly passedBy: States;
  readonly token: string | number;
}

const ended = { [SUCCESSOR_TOMBSTONE]: text("1", 5_000) };

/** The rows of each kind: {0 or 1 or -1, 0 or 1, others or token}. */
const rowsOf = ({ lock, said, beside, granted, unwanted = granted, passedBy, token }: Kind) => {
  const given = { ...lock(ME, 30_000), ...beside };
  const handedOver = { ...lock(SUCCESSOR, 20_000), ...over, ...granted };
  return {
    "{1, 1}: the successor has it, and nobody is told": {
      given,
      reply: [1, 1, token],
      after: handedOver,
      thrifty: true,
    },
    "{1, 1}: done by an earlier run, it is not done again": {
      given: handedOver,
      args: { ask: 1, lease: 10_000, tombstoneTtl: 90_000 },
      reply: [1, 1, token],
    },
    "{1, 1}: done by an earlier run, the TTL is raised": {
      given: handedOver,
      args: { lease: 60_000 },
      reply: [1, 1, token],
      after: { ...lock(SUCCESSOR, 60_000), ...over, ...granted },
    },
    "{1, 0}: others who hear of it go first": {
      given,
      args: { ask: 1 },
      reply: [1, 0, 1],
      after: { ...over, ...passedBy },
      heard: said,
      again: { reply: [1, 0, 0] },
    },
    "{1, 0}: sent again: somebody else may have it, and keeps it": {
      given: { ...lock(OTHER, 30_000), ...over },
      args: { ask: 1 },
      reply: [1, 0, 0],
    },
    ...each("{1, 1}: nobody hears of it but this process itself (%s at most)", { 1: 1, 2: 2 }, (own) => ({
      given,
      args: { ask: 1, own },
      reply: [1, 1, token],
      after: { ...lock(SUCCESSOR, 20_000), ...over, ...unwanted },
      heard: said,
      counts: true,
    })),
    ...each(
      "{1, 0}: a successor that is over gets nothing (others %s)",
      { asked: [1, 0, 1], "not asked": [0, 0, 1], "asked, but not there": [1, 1, 0] },
      ([ask, own, others]) => ({
        given: { ...given, ...ended },
        args: { ask, own },
        reply: [1, 0, others],
        after: { ...over, ...beside, ...ended },
        heard: said,
        counts: true,
        again: { reply: [1, 0, 0] },
      }),
    ),
    "{0}: the giver does not have it, and nobody has: who waits is told": {
      reply: [0, 0, 0],
      heard: said,
      again: { heard: said },
    },
    "{-1}: the giver does not have it, but another": { given: lock(OTHER, 30_000), reply: [-1, 0, 0] },
    "whoever may not announce cannot count others, and lets them go first": {
      given,
      args: { ask: 1 },
      mayNot: "announce",
      reply: [1, 0, 1],
      after: { ...over, ...passedBy },
      again: { reply: [1, 0, 0] },
    },
  } as const;
};
const plain: Kind = { lock, said: announced("0"), beside: {}, granted: {}, passedBy: {}, token: 0 };

scriptTable(bench, lockPass, {
  keys: { ...KEYS, channel: CHANNEL },
  args: ARGS,
  rows: rowsOf(plain),
});

const fenced: Kind = {
  lock,
  said: announced("0"),
  beside: { [COUNTER]: text(LAST, -1) },
  granted: { [COUNTER]: text(TOKEN, -1) },
  passedBy: { [COUNTER]: text(LAST, -1) },
  token: TOKEN,
};

scriptTable(bench, fencedOldPass, {
  keys: { ...KEYS, channel: CHANNEL, counter: COUNTER },
  args: ARGS,
  tolerates: "time incr get set",
  rows: {
    ...rowsOf(fenced),
    ...each(
      "{1, 0}: given back, where there is no token for the successor: %s [B124]",
      {
        "the counter holds other data": held({ theirs: "1" }, -1),
        "the counter holds a text": text("theirs", -1),
        "the counter is at its end": text("9223372036854775807", -1),
      },
      (counter) => ({
        given: { ...lock(ME, 30_000), [COUNTER]: counter },
        reply: [1, 0, 0],
        after: { [COUNTER]: counter, ...over },
        heard: announced("0"),
      }),
    ),
  },
});

const write: Kind = {
  lock: (owner, ttl) => writing(ttl, "1", [], owner),
  said: toldBoth("1"),
  beside: { [WRITERS]: scored({ [SUCCESSOR]: 9_000, [OTHER]: 9_000 }, 9_000) },
  granted: { [WRITERS]: scored({ [OTHER]: 9_000 }, 9_000) },
  unwanted: { [WRITERS]: scored({ [OTHER]: 9_000 }, 20_000) },
  passedBy: { [WRITERS]: scored({ [SUCCESSOR]: later(20_000), [OTHER]: 9_000 }, 20_000) },
  token: 0,
};
const others = { [WRITERS]: scored({ [OTHER]: 9_000 }, 9_000) };

scriptTable(bench, writeOldPass, {
  keys: WRITE_KEYS,
  args: WRITE_ARGS,
  rows: {
    ...rowsOf(write),
    "{1, 0}: a writer that reads goes on as a reader, and its successor gets nothing": {
      given: writing(30_000, "1", [25_000]),
      args: { own: 1, aliveFor: 0 },
      reply: [1, 0, 0],
      after: { ...reading({ [ME]: [25_000] }), ...over },
      heard: toldBoth("1"),
      counts: true,
    },
    "{1, 0}: a count of two digits is given back at once; a successor without aliveFor is not advertised": {
      given: { ...writing(30_000, "12"), ...others },
      args: { ask: 1, aliveFor: 0 },
      reply: [1, 0, 1],
      after: { ...over, ...others },
      heard: toldBoth("1"),
      again: { reply: [1, 0, 0] },
    },
  },
});

test("a fenced successor's token is at least the server's clock", async () => {
  const [seconds = 0] = (await bench.redis.time()).map(Number);
  await bench.put(lock(ME, 30_000));
  const keys = { ...KEYS, channel: CHANNEL, counter: COUNTER };
  const [, , token] = (await bench.runner(fencedOldPass)(keys, ARGS)) as [number, number, string];
  expect(Number(token)).toBeGreaterThanOrEqual(seconds * 1e6);
  expect(await bench.redis.pttl(COUNTER)).toBe(-1);
});
