/** The number of a semaphore or latch, set and read; and the count of a latch. */
import { counterState, counterTrySet, latchCountDown } from "../../src/scripts/generated.js";
import { type State, text, useBench } from "./bench.js";
import {
  answered,
  ENDLESS,
  MARKER,
  MARKER_TTL,
  marked,
  NO_NUMBER,
  NUMBER,
  number,
  OTHER_DATA,
  PERMIT_CHANNEL,
  told,
} from "./counts.js";
import { each, OUT_OF_MEMORY, scriptTable, WRONGTYPE } from "./table.js";

const CHANNEL = "redisson_countdownlatch__channel__{job}";
const bench = await useBench(CHANNEL, PERMIT_CHANNEL);

const counting = (count: number | string, marker?: State) => ({
  [NUMBER]: number(count),
  ...(marker && { [MARKER]: marker }),
});
const done = (outcome: number) => ({ [MARKER]: marked(outcome) });

scriptTable(bench, counterState, {
  keys: { number: NUMBER },
  args: {},
  endless: ENDLESS,
  rows: {
    ...each("%s, which stays as it is", { 5: 5, 0: 0, "-3": -3, "very many": 9007199254740990 }, (value) => ({
      given: { [NUMBER]: number(value, 30_000) },
      reply: value,
      even: ["out of memory"],
    })),
    "0 where there is none, and none is made": { reply: 0 },
    ...each("other data is left alone: %s", OTHER_DATA, ([state, reply]) => ({
      given: { [NUMBER]: state },
      reply,
    })),
    ...each("%s is read without a write", { 0: 0, 7: 7, "-7": -7 }, (value) => ({
      given: counting(value),
      mayNot: "decrby",
      reply: value,
    })),
    "a number of 18 digits is counted exactly": {
      given: counting("123456789012345678"),
      reply: Number("123456789012345678"),
    },
  },
  rights: { "a number": { given: counting(5), commands: "get" } },
});

scriptTable(bench, counterTrySet, {
  keys: { number: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { count: 5, message: "it is 5", markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    "1: set without end, and announced": {
      reply: answered(1),
      after: counting(5, marked(1)),
      heard: told("it is 5"),
      even: ["mute"],
    },
    "1: set by an earlier run, it is not set again": {
      given: { [MARKER]: text("1", 20_000) },
      reply: answered(1),
    },
    ...each("0: there is %s already", { 5: "5", 0: "0", "-1": "-1" }, (value) => ({
      given: { [NUMBER]: number(value, 30_000) },
      reply: answered(0),
      after: { [NUMBER]: number(value, 30_000), ...done(0) },
    })),
    "0: refused before, it is refused though there is none by now": {
      given: { [MARKER]: text("0", 20_000) },
      reply: answered(0),
    },
    ...each("what is no number is refused: %s", { text: "paid", nothing: "" }, (value) => ({
      given: { [NUMBER]: text(value, 30_000) },
      reply: NO_NUMBER,
    })),
    "0 may be set": {
      args: { count: 0 },
      reply: answered(1),
      after: counting(0, marked(1)),
      heard: told("it is 5"),
    },
    "other data is left alone": { given: { [NUMBER]: { value: { a: "b" }, ttl: -1 } }, reply: WRONGTYPE },
    "without memory nothing is set": { outOfMemory: true, reply: OUT_OF_MEMORY },
  },
  rights: { "there is none": { commands: "get set del" } },
});

scriptTable(bench, latchCountDown, {
  keys: { count: NUMBER, channel: CHANNEL, marker: MARKER },
  args: { markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    ...each(
      "%s are one fewer, and nobody is told",
      { 3: 3, 2: 2, "very many": 9007199254740990 },
      (count) => ({
        given: counting(count),
        reply: answered(1),
        after: counting(count - 1, marked(1)),
        even: ["out of memory"],
      }),
    ),
    "the last one deletes the key and announces it": {
      given: counting(1),
      reply: answered(1),
      after: done(1),
      heard: [{ channel: CHANNEL, payload: "0" }],
      even: ["out of memory", "mute"],
    },
    "counted by an earlier run, a latch that was set anew is left alone": {
      given: counting(1, marked(1)),
      reply: answered(1),
    },
    "a latch that is missing stays so, and nobody is told": { reply: answered(1), after: done(1) },
    ...each("%s is as good as missing", { 0: 0, "-1": -1, "-7": -7 }, (count) => ({
      given: counting(count),
      reply: answered(1),
      after: done(1),
    })),
    "a TTL is kept": {
      given: { [NUMBER]: number(5, 30_000) },
      reply: answered(1),
      after: { [NUMBER]: number(4, 30_000), ...done(1) },
    },
    ...each("other data is left alone: %s", OTHER_DATA, ([state, reply]) => ({
      given: { [NUMBER]: state },
      reply,
    })),
    ...each("%s is read without a write", { 0: 0, 1: 1, "-7": -7 }, (count) => ({
      given: counting(count),
      mayNot: "decrby",
      reply: answered(1),
      after: done(1),
      heard: count === 1 ? [{ channel: CHANNEL, payload: "0" }] : [],
    })),
    "a number of 18 digits is counted exactly": {
      given: counting("123456789012345678"),
      reply: answered(1),
      after: counting("123456789012345677", marked(1)),
    },
  },
  rights: {
    "one of several": { given: counting(3), commands: "exists get decrby set del" },
    "the last one": { given: counting(1), commands: "del" },
  },
});
