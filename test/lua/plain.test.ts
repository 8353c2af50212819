import { plainEnd, plainForce, plainKeep, plainPass, plainTake } from "../../src/scripts/generated.js";
import {
  announced,
  buried,
  CHANNEL,
  FORCING_ARGS,
  forced,
  held,
  LOCK,
  left,
  MARKER,
  ME,
  marked,
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
import { each, scriptTable } from "./table.js";

const bench = await useBench();

/** A hash with several owners, which only a mistake elsewhere could make: each script changes its own field only. */
const both = (ttl: number, mine: string, theirs: string): States => ({
  [LOCK]: held({ [ME]: mine, [OTHER]: theirs }, ttl),
});

scriptTable(bench, plainTake, {
  keys: { lock: LOCK, tombstone: TOMBSTONE },
  args: { owner: ME, lease: 60_000 },
  rows: {
    "1: a free lock is granted": { reply: 1, after: mine(60_000) },
    "1: an owner that has it keeps its count, and raises the TTL": {
      given: mine(30_000, "12"),
      reply: 1,
      after: mine(60_000, "12"),
    },
    "{0, pttl, holder}: another holds it": { given: theirs(50_000, "2"), reply: [0, left(50_000), OTHER] },
    "{2}: a wire id that is over does not get a free lock": {
      given: over,
      reply: [2],
    },
  },
});

const strangers: States = {
  taken: held({ [OTHER]: "1" }, 15_000),
  data: text("theirs", 15_000),
  list: { value: ["theirs"], ttl: -1 },
};
const neighbours = (ttl: number): States => ({
  first: held({ [ME]: "1" }, ttl),
  last: held({ [ME]: "1" }, ttl),
});

scriptTable(bench, plainKeep, {
  keys: { locks: [LOCK] },
  args: { lease: 30_000, owners: [ME], counts: [""] },
  tolerates: "hexists hset",
  thrifty: true,
  rows: {
    "1: the TTL is raised, and the count is set": {
      given: both(15_000, "1", "4"),
      args: { counts: ["2"] },
      reply: 1,
      after: both(30_000, "2", "4"),
    },
    "1: a longer TTL stays, and so does the count": {
      given: mine(60_000, "12"),
      reply: 1,
    },
    "0 and -1: what is gone or another's stays so, and its neighbours are kept": {
      given: { ...strangers, ...neighbours(15_000) },
      keys: { locks: ["first", "gone", "taken", "data", "list", "last"] },
      args: { owners: Array.from({ length: 6 }, () => ME), counts: Array.from({ length: 6 }, () => "1") },
      reply: [1, 0, -1, -1, -1, 1],
      after: { ...strangers, ...neighbours(30_000) },
    },
    "1: whoever may not count keeps the lock all the same": {
      given: mine(15_000),
      args: { counts: ["2"] },
      mayNot: "hset",
      reply: 1,
      after: mine(30_000),
    },
  },
});

scriptTable(bench, plainEnd, {
  keys: { lock: LOCK, channel: CHANNEL, tombstones: [TOMBSTONE] },
  args: { tombstoneTtl: 40_000, publish: "PUBLISH", owners: [ME] },
  counts: true,
  thrifty: true,
  tolerates: "hdel",
  rows: {
    "n: the lock is free, whatever the count was, and all who wait are told": {
      given: mine(30_000, "3"),
      reply: 1,
      after: over,
      heard: announced("0"),
      again: { reply: [0, 1] },
    },
    "{0, found}: sent again it tells what it found at first, and leaves a free lock alone": {
      given: over,
      args: { tombstoneTtl: 90_000 },
      reply: [0, 1],
    },
    "{0, 0}: nobody has the lock; the tombstone stands before a late TAKE": {
      reply: [0, 0],
      after: buried(0),
    },
    "{0, -1}: another's lock stays as it is": {
      given: theirs(30_000),
      reply: [0, -1],
      after: { ...theirs(30_000), ...buried(-1) },
    },
    "{heard, found, ...}: of many each has its answer and its tombstone, and there is one message": {
      given: { ...both(30_000, "2", "1"), "over:3": text("0", 20_000) },
      keys: { tombstones: ["over:1", "over:2", "over:3", "over:4"] },
      args: { owners: [ME, "client:2", "client:3", OTHER] },
      reply: [1, 1, -1, -1, 1],
      again: { reply: [0, 1, -1, 0, 1] },
      after: {
        "over:1": text("1", 40_000),
        "over:2": text("-1", 40_000),
        "over:3": text("0", 20_000),
        "over:4": text("1", 40_000),
      },
      heard: announced("0"),
    },
  },
});

scriptTable(bench, plainPass, {
  keys: { lock: LOCK, channel: CHANNEL, tombstone: TOMBSTONE, successorTombstone: SUCCESSOR_TOMBSTONE },
  args: { owner: ME, successor: SUCCESSOR, lease: 20_000, tombstoneTtl: 40_000, publish: "PUBLISH" },
  counts: true,
  thrifty: true,
  tolerates: "hdel hexists pexpire",
  rows: {
    "{0, 1, 1}: the successor has it, and nobody is told": {
      given: mine(30_000, "2"),
      reply: [0, 1, 1],
      after: { ...theirs(20_000, "1", SUCCESSOR), ...over },
    },
    "{0, 1, 1}: the successor keeps what it has made of it since": {
      given: { ...theirs(90_000, "3", SUCCESSOR), ...over },
      reply: [0, 1, 1],
    },
    "{0, -1, 1}: the successor that has it by a try of its own has it for its whole lease from now [B292]": {
      given: theirs(5_000, "1", SUCCESSOR),
      reply: [0, -1, 1],
      after: { ...theirs(20_000, "1", SUCCESSOR), ...buried(-1) },
    },
    "{0, 1, 0}: sent again when another has it": { given: { ...theirs(30_000), ...over }, reply: [0, 1, 0] },
    "{heard, 1, 0}: given back, and told, where the successor is over": {
      given: {
        ...successorOver,
        [LOCK]: held({ ...(successorOver[LOCK]?.value as object), [ME]: "1" }, 30_000),
      },
      reply: [1, 1, 0],
      after: { ...successorOver, ...over },
      heard: announced("0"),
    },
    "{heard, 1, 0}: given back where the successor's TTL is refused": {
      given: mine(30_000),
      mayNot: "pexpire",
      reply: [1, 1, 0],
      after: over,
      heard: announced("0"),
    },
    ...each(
      "{0, found, 0}: the giver does not have it: %s",
      { nobody: [{}, 0], another: [theirs(30_000), -1] } as Record<string, [given: States, found: number]>,
      ([given, found]) => ({ given, reply: [0, found, 0], after: { ...given, ...buried(found) } }),
    ),
  },
});

scriptTable(bench, plainForce, {
  keys: { lock: LOCK, channel: CHANNEL, marker: MARKER },
  args: FORCING_ARGS,
  thrifty: true,
  rows: {
    "{owner}: whoever has it, is over; who waits is told": {
      given: theirs(30_000, "2"),
      reply: [OTHER],
      after: forced(OTHER),
      heard: announced("0"),
    },
    "a copy gives the first answer (owner), and leaves the next holder alone": {
      given: { ...mine(30_000), ...marked(OTHER) },
      reply: [OTHER],
    },
    "{}: a free lock is told to nobody": { reply: [], after: marked() },
  },
});
