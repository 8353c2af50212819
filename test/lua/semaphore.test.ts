import { expect, test } from "vitest";
import {
  semaphoreAcquire,
  semaphoreDrain,
  semaphoreRelease,
  semaphoreUndo,
} from "../../src/scripts/generated.js";
import { forms, type State, text, useBench } from "./bench.js";
import {
  answered,
  ENDLESS,
  MARKER,
  MARKER_TTL,
  marked,
  NUMBER,
  number,
  OTHER_DATA,
  PERMIT_CHANNEL,
  told,
} from "./counts.js";
import { each, OUT_OF_MEMORY, refusal, scriptTable, WRONGTYPE } from "./table.js";

const bench = await useBench(PERMIT_CHANNEL);

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
    ...each(
      "1: of the free permits some are taken: %s",
      {
        "2 of 5": [5, 2],
        "5 of 5": [5, 5],
        "1 of 1": [1, 1],
        "nearly all of very many": [9007199254740990, 9007199254740989],
      } as const,
      ([permits, count]) => ({
        given: free(permits),
        args: { count },
        reply: [1, permits - count],
        after: free(permits - count, marked(count)),
      }),
    ),
    ...each(
      "0: too few are free, and nothing is left behind, nor is memory needed: %s",
      { "1 for 2": [1, 2], "0 for 1": [0, 1], "-2 for 1": [-2, 1], "-1 for 1": [-1, 1] } as const,
      ([permits, count]) => ({ given: free(permits), args: { count }, outOfMemory: true, reply: [0, 0] }),
    ),
    "0: a semaphore that is missing stays so": { args: { count: 1 }, reply: [0, 0] },
    "2: a call that is over gets nothing": { given: free(5, text("over", 20_000)), reply: [2, 0] },
    "granted before, it is granted still, whatever is free by now, and writes again [B173]": {
      given: free(-3, text("2", 20_000)),
      reply: [1, 0],
      after: free(-3, marked(2)),
    },
    "a TTL is kept": {
      given: { [NUMBER]: number(5, 30_000) },
      reply: [1, 3],
      after: { [NUMBER]: number(3, 30_000), [MARKER]: marked(2) },
    },
    ...each("other data is left alone: %s", OTHER_DATA, ([state, reply]) => ({
      given: { [NUMBER]: state },
      reply,
    })),
    "a marker that is no text is left alone": {
      given: free(5, { value: ["theirs"], ttl: 20_000 }),
      reply: WRONGTYPE,
    },
    "a number of 18 digits is counted exactly": {
      given: free("123456789012345678"),
      args: { count: 8 },
      reply: [1, expect.any(Number)],
      after: free("123456789012345670", marked(8)),
    },
    "without memory nothing is taken": { given: free(5), outOfMemory: true, reply: OUT_OF_MEMORY },
  },
  rights: { "enough is free": { given: free(5), commands: "get decrby set del" } },
});

test.each(forms(semaphoreAcquire))(
  "semaphore/acquire, %s: refused, it may be granted later",
  async (form) => {
    const acquire = () =>
      bench.runner(semaphoreAcquire, form)(
        { permits: NUMBER, marker: MARKER },
        { count: 2, markerTtl: MARKER_TTL },
      );
    await bench.put(free(1));
    expect(await acquire()).toEqual([0, 0]);
    await bench.redis.incr(NUMBER);
    expect(await acquire()).toEqual([1, 0]);
    await bench.expect(free(0, marked(2)));
  },
);

scriptTable(bench, semaphoreDrain, {
  keys: { permits: NUMBER, marker: MARKER },
  args: { markerTtl: MARKER_TTL },
  endless: ENDLESS,
  rows: {
    ...each(
      "all of %s are taken",
      { 5: 5, 1: 1, "very many": 9007199254740990, "as many as Redis counts": String(2n ** 63n - 1n) },
      (permits) => ({
        given: free(permits),
        reply: String(permits),
        after: free(0, marked(permits)),
      }),
    ),
    "each run says what the first has taken, leaves what is new, and writes again": {
      given: free(3, text("5", 20_000)),
      reply: "5",
      after: free(3, marked(5)),
    },
    ...each("0: nothing can be taken of %s, so decrby is not needed", { 0: 0, "-2": -2 }, (permits) => ({
      given: free(permits),
      mayNot: "decrby",
      reply: "0",
      after: free(permits, marked(0)),
    })),
    "0: a semaphore that is missing stays so": { reply: "0", after: { [MARKER]: marked(0) } },
    "a call that is over gets nothing": { given: free(5, text("over", 20_000)), reply: "0" },
    "a TTL is kept": {
      given: { [NUMBER]: number(5, 30_000) },
      reply: "5",
      after: { [NUMBER]: number(0, 30_000), [MARKER]: marked(5) },
    },
    ...each("other data is left alone: %s", OTHER_DATA, ([state, reply]) => ({
      given: { [NUMBER]: state },
      reply,
    })),
    "without memory nothing is taken": { given: free(5), outOfMemory: true, reply: OUT_OF_MEMORY },
  },
  rights: { "some are free": { given: free(5), commands: "get decrby set del" } },
});

test.each(forms(semaphoreDrain))(
  "semaphore/drain, %s: more than Lua counts exactly is taken whole, or left alone",
  async (form) => {
    await bench.put(free(String(2 ** 57)));
    const drain = bench.runner(semaphoreDrain, form)(
      { permits: NUMBER, marker: MARKER },
      { markerTtl: MARKER_TTL },
    );
    await drain.catch(() => {});
    expect(["0", String(2 ** 57)]).toContain(await bench.redis.get(NUMBER));
  },
);

scriptTable(bench, semaphoreRelease, {
  keys: { permits: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { count: 2, message: "", markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    "added and announced": {
      given: free(5),
      reply: answered(1),
      after: free(7, marked(1)),
      heard: told(7),
      even: ["out of memory", "mute"],
    },
    "more than Lua writes out in full are told in full [B118]": {
      given: free(String(10n ** 17n)),
      args: { count: 2 ** 52 },
      reply: answered(1),
      after: free(String(10n ** 17n + 2n ** 52n), marked(1)),
      heard: told(String(10n ** 17n + 2n ** 52n)),
    },
    "what is told may be how many are new": {
      given: free(5),
      args: { message: "2" },
      reply: answered(1),
      after: free(7, marked(1)),
      heard: told(2),
    },
    "a semaphore that is missing is made, without end": {
      reply: answered(1),
      after: free(2, marked(1)),
      heard: told(2),
    },
    ...each(
      "what is at most 0 afterwards is not announced: %s",
      { "2 more than -5": [-5, 2, []], "2 more than -2": [-2, 2, []] } as const,
      ([permits, count]) => ({
        given: free(permits),
        args: { count },
        reply: answered(1),
        after: free(permits + count, marked(1)),
      }),
    ),
    ...each(
      "what is above 0 afterwards is announced: %s",
      { "3 more than -2": [-2, 3], "1 more than 0": [0, 1] } as const,
      ([permits, count]) => ({
        given: free(permits),
        args: { count },
        reply: answered(1),
        after: free(permits + count, marked(1)),
        heard: told(1),
      }),
    ),
    ...each(
      "what Redis does not count any more is refused, and nothing is written: %s",
      {
        "1 more than the most": ["9223372036854775807", 1],
        "many more": ["9223372036854770000", 2 ** 53 - 1],
      } as const,
      ([permits, count]) => ({ given: free(permits), args: { count }, reply: refusal("would overflow") }),
    ),
    "nearly as many as Redis counts are added": {
      given: free("9223372036854770000"),
      args: { count: 2_000, message: "many" },
      reply: answered(1),
      after: free("9223372036854772000", marked(1)),
      heard: told("many"),
    },
    "large numbers are announced digit by digit": {
      given: free("9007199254740980"),
      args: { count: 9 },
      reply: answered(1),
      after: free("9007199254740989", marked(1)),
      heard: told("9007199254740989"),
    },
    "a TTL is kept": {
      given: { [NUMBER]: number(5, 30_000) },
      reply: answered(1),
      after: { [NUMBER]: number(7, 30_000), [MARKER]: marked(1) },
      heard: told(7),
    },
    ...each("other data is left alone: %s", OTHER_DATA, ([state, reply]) => ({
      given: { [NUMBER]: state },
      reply,
    })),
    ...each("%s is read without a write", { 0: 0, 7: 7, "-7": -7 }, (permits) => ({
      given: free(permits),
      mayNot: "decrby",
      reply: answered(1),
      after: free(permits + 2, marked(1)),
      heard: permits + 2 > 0 ? told(permits + 2) : [],
    })),
    "a number of 18 digits is counted exactly": {
      given: free("123456789012345678"),
      reply: answered(1),
      after: free("123456789012345680", marked(1)),
      heard: [{ channel: PERMIT_CHANNEL, payload: expect.any(String) }],
    },
  },
  rights: { "some are free": { given: free(5), commands: "exists get incrby set del" } },
});

scriptTable(bench, semaphoreUndo, {
  keys: { permits: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER },
  args: { markerTtl: MARKER_TTL, publish: "PUBLISH" },
  endless: ENDLESS,
  rows: {
    ...each("what was taken is given back and announced: %s", { 2: 2, 1: 1 }, (taken) => ({
      given: free(3, text(String(taken), 20_000)),
      reply: 1,
      after: free(3 + taken, marked("over")),
      heard: told(3 + taken),
      even: ["out of memory", "mute"],
    })),
    "a call that has taken nothing yet is refused from now on": {
      given: free(3),
      reply: 1,
      after: free(3, marked("over")),
    },
    "the marker lives anew with each run": {
      given: free(3, text("over", 20_000)),
      reply: 1,
      after: free(3, marked("over")),
    },
    "who took none gives none back": {
      given: free(3, text("0", 20_000)),
      reply: 1,
      after: free(3, marked("over")),
    },
    "who took none makes no semaphore": {
      given: { [MARKER]: text("0", 20_000) },
      reply: 1,
      after: { [MARKER]: marked("over") },
    },
    ...each("what comes back to %s is not announced", { "-2": -2, "-4": -4 }, (permits) => ({
      given: free(permits, text("2", 20_000)),
      reply: 1,
      after: free(permits + 2, marked("over")),
    })),
    "what is above 0 afterwards is announced": {
      given: free(-1, text("2", 20_000)),
      reply: 1,
      after: free(1, marked("over")),
      heard: told(1),
    },
    "a TTL is kept": {
      given: { [NUMBER]: number(3, 30_000), [MARKER]: text("2", 20_000) },
      reply: 1,
      after: { [NUMBER]: number(5, 30_000), [MARKER]: marked("over") },
      heard: told(5),
    },
    "a semaphore that is missing is made": {
      given: { [MARKER]: text("2", 20_000) },
      reply: 1,
      after: free(2, marked("over")),
      heard: told(2),
    },
    "other data is left alone, and the call is over all the same": {
      given: { [NUMBER]: { value: ["theirs"], ttl: -1 }, [MARKER]: text("2", 20_000) },
      reply: WRONGTYPE,
      after: { [NUMBER]: { value: ["theirs"], ttl: -1 }, [MARKER]: marked("over") },
      again: { reply: 1 },
    },
  },
  rights: { "some were taken": { given: free(3, text("2", 20_000)), commands: "get incrby set del" } },
});
