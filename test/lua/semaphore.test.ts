import { expect } from "vitest";
import { semaphoreAcquire, semaphoreRelease, semaphoreUndo } from "../../src/scripts/generated.js";
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
import { each, refusal, scriptTable, WRONGTYPE } from "./table.js";

const bench = await useBench();

/** The number of free permits, and the marker of the call if it has run. */
const free = (permits: number | string, marker?: State) => ({
  [NUMBER]: number(permits),
  ...(marker && { [MARKER]: marker }),
});
scriptTable(bench, semaphoreAcquire, {
  keys: { permits: NUMBER, marker: MARKER },
  args: { count: 2, markerTtl: MARKER_TTL },
  endless: ENDLESS,
  rows: {
    "1: a call takes 2 of 5 permits that are free": {
      given: free(5),
      args: { count: 2 },
      reply: [1, 3, "2"],
      after: free(3, marked(2)),
    },
    "0: a call leaves nothing behind where too few permits are free: 1 for 2": {
      given: free(1),
      args: { count: 2 },
      reply: [0],
      thrifty: true,
    },
    "2: a call that is over gets nothing": { given: free(5, text("over", 20_000)), reply: [2] },
    "1: a call that was granted before stays granted, whatever is free by now, and writes again [B173]": {
      given: free(-3, text("2", 20_000)),
      reply: [1, 0, "2"],
      after: free(-3, marked(2)),
    },
    "a marker that is no text is left alone": {
      given: free(5, { value: ["theirs"], ttl: 20_000 }),
      reply: WRONGTYPE,
    },
    // 0 is all of them.
    "a call takes all permits, as many as Redis counts": {
      given: free(String(2n ** 63n - 1n)),
      args: { count: 0 },
      reply: [1, 0, String(2n ** 63n - 1n)],
      after: free(0, marked(String(2n ** 63n - 1n))),
    },
    "a copy of the call says what the first has taken, leaves what is new, and writes again": {
      given: free(3, text("5", 20_000)),
      args: { count: 0 },
      reply: [1, 3, "5"],
      after: free(3, marked(5)),
    },
    ...each(
      "a call takes nothing of %s permits, and needs no decrby",
      { 0: 0, none: undefined },
      (permits) => ({
        given: permits === undefined ? {} : free(permits),
        args: { count: 0 },
        mayNot: "decrby",
        reply: [1, 0, "0"],
        after: { ...(permits === undefined ? {} : free(permits)), [MARKER]: marked(0) },
      }),
    ),
    "a number of 18 digits is counted exactly": {
      given: free("123456789012345678"),
      args: { count: 8 },
      reply: [1, expect.any(Number), "8"],
      after: free("123456789012345670", marked(8)),
    },
  },
});

scriptTable(bench, semaphoreRelease, {
  keys: { permits: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { count: 2, message: "", markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" },
  endless: ENDLESS,
  thrifty: true,
  rows: {
    "-1: what comes too late changes nothing [B3]": { args: { latest: 1 }, reply: answered(-1) },
    "1: a late copy has the remembered answer [B3]": {
      given: { [MARKER]: marked(1) },
      args: { latest: 1 },
      reply: answered(1),
    },
    "permits are added and announced": {
      given: free(5),
      reply: answered(1),
      after: free(7, marked(1)),
      heard: told(7),
    },
    "more permits than Lua writes out in full are announced in full [B118]": {
      given: free(String(10n ** 17n)),
      args: { count: 2 ** 52 },
      reply: answered(1),
      after: free(String(10n ** 17n + 2n ** 52n), marked(1)),
      heard: told(String(10n ** 17n + 2n ** 52n)),
      // Without memory such a call is refused, and sent again.
      thrifty: false,
    },
    "the message may say how many permits are new": {
      given: free(5),
      args: { message: "2" },
      reply: answered(1),
      after: free(7, marked(1)),
      heard: told(2),
    },
    "a number of permits below 0 is not announced": {
      given: free(-5),
      args: { count: 2 },
      reply: answered(1),
      after: free(-3, marked(1)),
    },
    ...each(
      "more permits than Redis counts are refused, and nothing is written: %s",
      {
        "1 more than the most": ["9223372036854775807", 1],
        many: ["9223372036854770000", 2 ** 53 - 1],
      } as const,
      ([permits, count]) => ({ given: free(permits), args: { count }, reply: refusal("would overflow") }),
    ),
  },
});

scriptTable(bench, semaphoreUndo, {
  keys: { permits: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { markerTtl: MARKER_TTL, publish: "PUBLISH" },
  endless: ENDLESS,
  thrifty: true,
  rows: {
    "what a call took is given back and announced: 1": {
      given: free(3, text("1", 20_000)),
      reply: 1,
      after: free(4, marked("over")),
      heard: told(4),
    },
    "a call that has taken nothing yet is refused from now on": {
      given: free(3),
      reply: 1,
      after: free(3, marked("over")),
    },
    "a call that took nothing makes no semaphore": {
      given: { [MARKER]: text("0", 20_000) },
      reply: 1,
      after: { [MARKER]: marked("over") },
    },
    "other data stays as it is, and the call is over all the same": {
      given: { [NUMBER]: { value: ["theirs"], ttl: -1 }, [MARKER]: text("2", 20_000) },
      reply: WRONGTYPE,
      after: { [NUMBER]: { value: ["theirs"], ttl: -1 }, [MARKER]: marked("over") },
      again: { reply: 1 },
    },
  },
});
