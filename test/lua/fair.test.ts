/** The scripts of a lock with a queue. */
import { expect, test } from "vitest";
import { fairEnd, fairForce, fairTake } from "../../src/scripts/generated.js";
import {
  buried,
  FORCING_ARGS,
  forced,
  LOCK,
  left,
  MARKER,
  ME,
  MOST,
  marked,
  mine,
  OTHER,
  otherData,
  over,
  type States,
  scored,
  text,
  useBench,
} from "./bench.js";
import {
  ALIVE,
  FAIR_KEYS,
  GRACE,
  JAVA,
  JAVA_2,
  JAVA_HOLDER,
  NO_WAIT,
  PATIENCE,
  QUEUE,
  queue,
  THIRD,
  TIMEOUTS,
  theirs,
  woken,
} from "./fair-line.js";
import { each, scriptTable, WRONGTYPE } from "./table.js";

const bench = await useBench();

const crowd = (less: number, before = "") =>
  queue(
    before + [1, 2, 3, 4].map((i) => `client:${9 + i} ${i * 500_000 - less} 9_000`).join(", "),
    less === 0 ? undefined : 1_700_000,
  );

scriptTable(bench, fairTake, {
  keys: FAIR_KEYS,
  args: { owner: ME, lease: 60_000, grace: GRACE, aliveFor: PATIENCE, publish: "PUBLISH", coWaiters: [] },
  endless: /^(redisson_lock_(queue|timeout)|holdfast_alive):/,
  rows: {
    ...each(
      "1: a free lock without a queue, to one that %s",
      { waits: PATIENCE, "does not wait": NO_WAIT },
      (aliveFor) => ({ args: { aliveFor }, reply: 1, after: mine(60_000) }),
    ),
    "1: granted before, it keeps count, TTL and queue": {
      given: { ...mine(90_000, "12"), ...queue("other 330_000 5_000, java -1") },
      args: { coWaiters: [OTHER] },
      reply: 1,
    },
    "1: a grant heeds what it hears of co-waiters before it takes the grace off": {
      given: queue("me 400_000 9_000, other 5_000 1_000"),
      args: { coWaiters: [OTHER] },
      reply: 1,
      after: { ...mine(60_000), ...queue("other ~0 heard") },
    },
    "1: however many are behind, all are one grace nearer": {
      given: crowd(0, "me 400_000 9_000, "),
      reply: 1,
      after: { ...mine(60_000), ...crowd(GRACE) },
    },
    "1: whoever is in line is granted the lock after the dead before it were dropped": {
      given: queue("java -1, other 900_000 lapsed, java2, me 1_200_000 9_000, third -1 9_000"),
      reply: 1,
      after: { ...mine(60_000), ...queue(`third ${-1 - GRACE} 9_000`) },
    },
    "{2}: a wire id that is over does not get a free lock, nor a place": {
      given: { ...queue("other 330_000 5_000"), ...over },
      args: { coWaiters: [OTHER] },
      reply: [2],
    },
    // Refused for now: {0, ms, holder, i...}. The scores are Redisson's.
    "a place: 330 s for the first in line": {
      given: theirs(30_000),
      reply: [0, left(30_000), JAVA_HOLDER],
      after: { ...theirs(30_000), ...queue("me ~330_000 heard", 330_000) },
    },
    "a place behind a Redisson waiter, with its score as the base, as for one whose place was taken meanwhile":
      {
        given: { ...theirs(30_000), ...queue("java 310_123") },
        reply: [0, left(30_000), JAVA_HOLDER],
        after: { ...theirs(30_000), ...queue("java 310_123, me 610_123 heard", 611_000) },
      },
    "a place behind one without a score that is not the head: the holder's TTL is the base": {
      given: { ...theirs(30_000), ...queue("java 310_000, java2") },
      reply: [0, left(30_000), JAVA_HOLDER],
      after: { ...theirs(30_000), ...queue("java 310_000, java2, me ~330_000 heard", 330_000) },
    },
    "a lock without TTL: -1, and the grace alone is the score": {
      given: theirs(-1),
      reply: [0, -1, JAVA_HOLDER],
      after: { ...theirs(-1), ...queue(`me ~${GRACE} heard`, GRACE) },
    },
    "a call that does not wait does not overtake": {
      given: queue("java 310_000, other 610_000 9_000"),
      args: { aliveFor: NO_WAIT },
      reply: [0, 1_000, JAVA],
    },
    "a call that does not wait leaves places, and the word on who is alive, as they are": {
      given: { ...theirs(30_000), ...queue("me 310_000 9_000", 15_000) },
      args: { aliveFor: NO_WAIT },
      reply: [0, left(30_000), JAVA_HOLDER],
    },
    "a waiter that is heard of keeps its place while the holder renews past its score": {
      given: { ...theirs(30_000), ...queue("other 10_000 5_000, me 10_000 1", 15_000) },
      reply: [0, left(30_000), JAVA_HOLDER],
      after: { ...theirs(30_000), ...queue("other 10_000 5_000, me ~330_000 heard", 330_000) },
    },
    "who is alive is decided by the server's clock alone, and by our word before Redisson's score": {
      given: queue("third 900_000 lapsed, other -1 60_000"),
      args: { aliveFor: NO_WAIT },
      reply: [0, 1_000, OTHER],
      after: queue("other -1 60_000"),
      heard: woken(OTHER),
    },
    "a head without a score does not block the queue": {
      given: queue("java, third - 9_000, other 610_000"),
      args: { aliveFor: NO_WAIT },
      reply: [0, 1_000, OTHER],
      after: queue("other 610_000"),
      heard: woken(OTHER),
    },
    "who stands in the queue without a score is put at its end": {
      given: queue("me, other 310_000"),
      reply: [0, 1_000, OTHER],
      after: queue("other 310_000, me 610_000 heard", 611_000),
      heard: woken(OTHER),
    },
    "co-waiters are kept by the same call, each with its own time": {
      given: { ...theirs(30_000), ...queue("other 500_000 100, third 100_000 100, me 900_000 100") },
      args: { coWaiters: [OTHER, THIRD] },
      reply: [0, left(30_000), JAVA_HOLDER],
      after: { ...theirs(30_000), ...queue("other 500_000 heard, third ~330_000 heard, me 900_000 heard") },
    },
    "co-waiters that have lost their ticket are named, and get none by this call": {
      given: { ...theirs(30_000), ...queue("other 500_000 100, third") },
      args: { coWaiters: ["gone:1", OTHER, THIRD, "gone:2"] },
      reply: [0, left(30_000), JAVA_HOLDER, 1, 3, 4],
      after: { ...theirs(30_000), ...queue("other 500_000 heard, third, me ~330_000 heard") },
    },
    ...each(
      "the co-waiter whose turn it is at a free lock is named, %s",
      { "the first": [[OTHER], 1], "behind one without a ticket": [[THIRD, OTHER], 1, 2] } as Record<
        string,
        [coWaiters: string[], ...named: number[]]
      >,
      ([coWaiters, ...named]) => ({
        given: queue("other 500_000 10_000, me 900_000 heard"),
        args: { coWaiters },
        reply: [0, 1_000, OTHER, ...named],
        after: queue("other 500_000 heard, me 900_000 heard"),
      }),
    ),
    "a grant names the co-waiters that have lost their ticket, too [B222]": {
      given: queue("me 400_000 9_000, other 500_000 1_000"),
      args: { coWaiters: ["gone:1", OTHER, "gone:2"] },
      reply: [1, 0, "", 1, 3],
      after: { ...mine(60_000), ...queue("other ~200_000 heard") },
      again: { reply: 1 },
    },
    "the first that seems to be dead at a free lock has a last chance: after a stall nobody was heard of": {
      given: queue("third 330_000 -1, other 630_000 -1, java 930_000"),
      args: { aliveFor: NO_WAIT },
      reply: [0, left(200), THIRD],
      after: queue("third 330_000 ~200.5, other 630_000 -1, java 930_000"),
    },
    "those behind one whose last chance is over had as much time, and are dropped with it": {
      given: queue("gone 330_000 lapsed, gone2 630_000 -1, other 930_000 9_000"),
      args: { aliveFor: NO_WAIT },
      reply: [0, 1_000, OTHER],
      after: queue("other ~330_000 9_000"),
      heard: woken(OTHER),
    },
    ...each(
      "other data in the key of %s stays as it is",
      {
        "the lock": { [LOCK]: { value: ["theirs"], ttl: 60_000 } },
        "the queue": { [QUEUE]: text("theirs", 60_000) },
        "the timeouts": { ...theirs(30_000), [TIMEOUTS]: text("theirs", 60_000) },
        "those alive": { ...queue("me 900_000"), [ALIVE]: text("theirs", 60_000) },
        "those alive, of which the head is asked": {
          ...queue("java 330_000"),
          [ALIVE]: text("theirs", 60_000),
        },
      } as Record<string, States>,
      (given) => ({ given, reply: WRONGTYPE }),
    ),
  },
});

test("fair/take: the largest numbers survive: a place behind a lock that lasts for ever", async () => {
  await bench.put(theirs(MOST));
  const args = { owner: ME, lease: 60_000, grace: 1_000, aliveFor: 1e12, publish: "PUBLISH", coWaiters: [] };
  expect(await bench.runner(fairTake)(FAIR_KEYS, args)).toEqual([0, left(MOST), JAVA_HOLDER]);
  const { redis } = bench;
  const scores = [TIMEOUTS, ALIVE].map((key) => redis.zrange(key, "0", "0", "WITHSCORES"));
  expect(await Promise.all(scores)).toEqual([
    [ME, expect.stringMatching(/^900\d{13}$/)],
    [ME, expect.stringMatching(/^\d{13}$/)],
  ]);
  // Not 2^53 or more, which Lua could not count exactly.
  expect(await redis.pttl(ALIVE)).toEqual(left(2 ** 52));
});

const waiting = queue("other 330_000 9_000, java 630_000");
const asked = { ...queue("java 330_000"), [ALIVE]: text("theirs", 60_000) };
const { tombstone, ...COMMON_KEYS } = FAIR_KEYS;
/** A release, which leaves these keys beside its tombstone and wakes a waiter. */
const released = (after: States, ...waiters: string[]) => ({
  reply: [0, 1],
  after: { ...after, ...over },
  heard: waiters.flatMap(woken),
});
/** A waiter leaves while another has the lock, so that nobody is told. */
const gaveUp = (given: States, after: States) => ({
  given: { ...theirs(30_000), ...given },
  reply: [0, -1],
  after: { ...theirs(30_000), ...after, ...buried(-1) },
});
/** Keys and arguments for several owners at once, and their tombstones. */
const together = (...owners: string[]) => ({
  keys: { tombstones: owners.map((owner) => `over:${owner}`) },
  args: { owners },
});
const allOver = (found: number, ...owners: string[]): States =>
  Object.fromEntries(owners.map((owner) => [`over:${owner}`, text(String(found), 40_000)]));
const row = (waiters: string[]): States =>
  queue(waiters.map((name, i) => `${name} ${30_000 + i * GRACE} 9_000`).join(", "));
const some = Array.from({ length: 1_800 }, (_, i) => `w${i}`);
const leaving = ["w1799", "w700", "w1300", "w699", "w3"];
const thousands = Array.from({ length: 8_500 }, (_, i) => `w${i}`);
const thousandsWait = (due: number, ...first: string[]): States => ({
  ...theirs(30_000),
  [QUEUE]: { value: [...first, ...thousands], ttl: -1 },
  [TIMEOUTS]: scored(Object.fromEntries(thousands.map((name) => [name, due]))),
});

scriptTable(bench, fairEnd, {
  keys: { ...COMMON_KEYS, tombstones: [tombstone] },
  args: { tombstoneTtl: 40_000, publish: "PUBLISH", grace: GRACE, owners: [ME] },
  thrifty: true,
  tolerates: "hdel",
  rows: {
    "{0, 1}: a release; the head alone is woken, on its own channel": {
      given: { ...mine(30_000, "3"), ...waiting },
      ...released(waiting, OTHER),
    },
    "{0, 1}: a release that nobody waits for": { given: mine(30_000), ...released({}) },
    "{0, found}: sent again it leaves a free lock, and the queue, alone": {
      given: { ...queue("java -1, me 330_000 9_000, other 630_000 9_000"), ...over },
      args: { tombstoneTtl: 90_000 },
      reply: [0, 1],
    },
    "the dead at the head are passed over by the server's clock, one without a score too": {
      given: {
        ...mine(30_000),
        ...queue("java -1, gone 900_000 lapsed, java3, gone2 - 9_000, other -1 60_000, third 900_000 lapsed"),
      },
      ...released(queue("other -1 60_000, third ~600_000 lapsed"), OTHER),
    },
    "the head that seems to be dead has a last chance: it is told, and so is the first that is not, which looks after it":
      {
        given: { ...mine(30_000), ...queue("java -1, other 330_000 -1, third 630_000 -1, java2 930_000") },
        ...released(queue("other 330_000 ~200.5, third 630_000 -1, java2 930_000"), OTHER, JAVA_2),
      },
    ...each(
      "one that is dropped early leaves %s to those behind, who keep theirs",
      { "a whole turn": [630_000, GRACE], "the rest of its turn": [100_000, 100_000] },
      ([due, left]) => ({
        given: {
          ...mine(30_000),
          ...queue(`gone ${due} lapsed, java ${GRACE + 700_000}, other ${2 * GRACE + 10} 9_000`),
        },
        ...released(queue(`java ~${GRACE + 700_000 - left}, other ~${2 * GRACE} 9_000`), JAVA),
      }),
    ),
    "{0, 0}: nobody has it, and nobody waits": { reply: [0, 0], after: buried(0) },
    "{0, 0}: nobody has it; the next is told, whom nobody told when the lease ended": {
      given: queue("other 330_000 9_000, java 630_000"),
      reply: [0, 0],
      after: { ...queue("other 330_000 9_000, java 630_000"), ...buried(0) },
      heard: woken(OTHER),
    },
    "{0, -1}: a waiter that gives up leaves the queue of a held lock, those behind it one grace nearer":
      gaveUp(
        queue("third 330_000 9_000, me 630_000 9_000, other 930_000 9_000, java 1_230_000"),
        queue("third 330_000 9_000, other 630_000 9_000, java 930_000"),
      ),
    "{0, -1}: the last of a queue leaves no key behind but its tombstone": gaveUp(
      queue("me 330_000 9_000"),
      {},
    ),
    "{0, -1}: one that stands twice leaves the later place, which alone has its score": gaveUp(
      {
        ...queue("third 330_000 9_000, me 630_000 9_000, other 930_000 9_000"),
        [QUEUE]: { value: [ME, THIRD, ME, OTHER], ttl: -1 },
      },
      {
        ...queue("third 330_000 9_000, other 630_000 9_000"),
        [QUEUE]: { value: [ME, THIRD, OTHER], ttl: -1 },
      },
    ),
    "{0, 0}: with the dead at the head dropped, by the server's clock or for want of a score": {
      given: queue(`gone 900_000 lapsed, me 330_000 9_000, java ${GRACE - 1}, java3 1, other 630_000 9_000`),
      reply: [0, 0],
      after: { ...queue(`other ~${GRACE} 9_000`), ...buried(0) },
      heard: woken(OTHER),
    },
    ...each(
      "other data in the key of %s stays as it is; the lock is given back, and the wire id is over",
      {
        "the queue": { [QUEUE]: text("theirs", 60_000) },
        "the timeouts": { [QUEUE]: { value: [OTHER], ttl: -1 }, [TIMEOUTS]: text("theirs", 60_000) },
        "those alive": asked,
      } as Record<string, States>,
      (states) => ({
        given: { ...mine(30_000), ...states },
        reply: WRONGTYPE,
        after: { ...states, ...over },
        again: { reply: [0, 1] },
      }),
    ),
    "{0, -1}: other data in the key of the lock stays as it is": {
      given: otherData,
      reply: [0, -1],
      after: { ...otherData, ...buried(-1) },
    },
    "many: the holder and waiters; of a waiter that is there twice only the last place goes": {
      ...together(JAVA_HOLDER, ME, JAVA),
      given: { ...theirs(30_000), ...queue("java, me, other 930_000 9_000, me 630_000 9_000") },
      reply: [0, 1, 0, 0],
      after: {
        ...queue("other 630_000 9_000"),
        [QUEUE]: { value: [OTHER], ttl: -1 },
        ...allOver(1, JAVA_HOLDER),
        ...allOver(0, ME, JAVA),
      },
      heard: woken(OTHER),
    },
    "many: one before more than Lua can unpack": {
      ...together("first"),
      given: thousandsWait(900_000, "first"),
      reply: [0, -1],
      after: { ...thousandsWait(900_000 - GRACE), ...allOver(-1, "first") },
    },
    "many: far from each other in a long queue, as one after the other": {
      ...together(...leaving),
      given: { ...theirs(30_000), ...row(some) },
      reply: [0, ...leaving.map(() => -1)],
      after: {
        ...theirs(30_000),
        ...row(some.filter((name) => !leaving.includes(name))),
        ...allOver(-1, ...leaving),
      },
    },
  },
});

const stillWait = queue("other -1 9_000, java -1");

scriptTable(bench, fairForce, {
  keys: { ...COMMON_KEYS, marker: MARKER },
  args: { ...FORCING_ARGS, grace: GRACE },
  thrifty: true,
  rows: {
    "{owner}: whoever has it, is over; the queue stays, and its head is woken": {
      given: { ...theirs(30_000), ...stillWait },
      reply: [JAVA_HOLDER],
      after: { ...stillWait, ...forced(JAVA_HOLDER) },
      heard: woken(OTHER),
    },
    "{owner}: a copy leaves the next holder and the queue alone": {
      given: { ...mine(30_000), ...queue("java -1, other 630_000"), ...marked(THIRD) },
      reply: [THIRD],
    },
    "{}: it was free, and nothing is announced or changed": {
      given: queue("java -1, other 630_000"),
      reply: [],
      after: { ...queue("java -1, other 630_000"), ...marked() },
    },
    "other data in the place of the queue stays as it is, and so does the lock [B224]": {
      given: { ...mine(30_000), [QUEUE]: text("theirs", 60_000) },
      reply: WRONGTYPE,
    },
    "other data in the key of those alive stays as it is; the lock is given back": {
      given: { ...mine(30_000), ...asked },
      reply: WRONGTYPE,
      after: { ...asked, ...forced(ME) },
      again: { reply: [ME] },
    },
  },
});
