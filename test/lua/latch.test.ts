/** The number of a semaphore or latch, set; and the count of a latch. */
import { counterTrySet, latchCountDown } from "../../src/scripts/generated.js";
import { type State, text, useBench } from "./bench.js";
import {
  answered,
  ENDLESS,
  MARKER,
  MARKER_TTL,
  marked,
  NUMBER,
  number,
  PERMIT_CHANNEL,
  told,
} from "./counts.js";
import { each, refusal, scriptTable } from "./table.js";

const CHANNEL = "redisson_countdownlatch__channel__{job}";
const bench = await useBench();

const counting = (count: number | string, marker?: State) => ({
  [NUMBER]: number(count),
  ...(marker && { [MARKER]: marker }),
});
const done = (outcome: number) => ({ [MARKER]: marked(outcome) });

scriptTable(bench, counterTrySet, {
  keys: { number: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { count: 5, message: "it is 5", markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    "1: a number is set without end, and announced": {
      reply: answered(1),
      after: counting(5, marked(1)),
      heard: told("it is 5"),
    },
    "a copy of a call whose answer was 0 changes nothing": {
      given: { [MARKER]: text("0", 20_000) },
      reply: answered(0),
    },
    ...each("a text that is no number is refused: %s", { text: "paid", nothing: "" }, (value) => ({
      given: { [NUMBER]: text(value, 30_000) },
      reply: refusal("not an integer"),
    })),
    "-1: what comes too late changes nothing [B3]": { args: { latest: 1 }, reply: answered(-1) },
    "1: a late copy has the remembered answer [B3]": {
      given: { [MARKER]: marked(1) },
      args: { latest: 1 },
      reply: answered(1),
    },
  },
});

scriptTable(bench, latchCountDown, {
  keys: { count: NUMBER, channel: CHANNEL, marker: MARKER },
  args: { markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" },
  endless: ENDLESS,
  thrifty: true,
  rows: {
    "2 become one fewer, and nobody is told": {
      given: counting(2),
      reply: answered(1),
      after: counting(1, marked(1)),
    },
    "the last one deletes the key and announces it": {
      given: counting(1),
      reply: answered(1),
      after: done(1),
      heard: [{ channel: CHANNEL, payload: "0" }],
    },
    "a copy of the call leaves a latch alone that was set anew": {
      given: counting(1, marked(1)),
      reply: answered(1),
    },
    "-1: what comes too late changes nothing [B3]": { args: { latest: 1 }, reply: answered(-1) },
    "1: a late copy has the remembered answer [B3]": {
      given: { [MARKER]: marked(1) },
      args: { latest: 1 },
      reply: answered(1),
    },
    ...each("a latch at %s counts as missing, and is read without a write", { 0: 0, "-7": -7 }, (count) => ({
      given: counting(count),
      mayNot: "decrby",
      reply: answered(1),
      after: done(1),
    })),
  },
});
