/** The test of the test: each mistake of the one list is found, by schedules from its seed on. */
import { describe, expect, test } from "vitest";
import { PATIENCE } from "../support/index.js";
import { PLANTED } from "./planted.js";
import { bundle, simulate } from "./run.mjs";

/** Schedules that may be played until a mistake is found: after a change of the library another one may show it. */
const MOST = 300;

const file = await bundle();

function search(onlyHistory: boolean) {
  const planted = PLANTED.filter(({ isInHistories }) => isInHistories || !onlyHistory).map(
    ({ name }) => name,
  );
  const job = { planted, schedules: MOST, seed: 1, isShort: true, onlyHistory };
  return simulate(file, job).then(
    ({ findings }) => new Map(findings.map((each) => [each.planted, each.failure])),
  );
}

describe.each([
  { how: "by what is promised", onlyHistory: false },
  { how: "by histories alone, which are not linearizable", onlyHistory: true },
])("found $how", ({ onlyHistory }) => {
  let found: Promise<Map<string | undefined, string>> | undefined;

  test.each(PLANTED.filter(({ isInHistories }) => isInHistories || !onlyHistory))(
    'the mistake "$name" shows, by which $what',
    async ({ name }) => {
      found ??= search(onlyHistory);
      const failure = (await found).get(name);
      expect(failure).toMatch(onlyHistory ? /is not linearizable/ : /./);
    },
    20 * PATIENCE,
  );
});

test("each mistake has a name of its own", () => {
  expect(new Set(PLANTED.map(({ name }) => name)).size).toBe(PLANTED.length);
});
