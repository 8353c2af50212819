/** What the tests of models share: random histories of each kind, and the mistakes that they must find. */
import { describe, expect, test } from "vitest";
import type { Report } from "./check.js";

const { HOLDFAST_MODEL_RUNS, HOLDFAST_MODEL_SEED, HOLDFAST_MODEL_PATH: path } = process.env;
const seed = HOLDFAST_MODEL_SEED === undefined ? undefined : Number(HOLDFAST_MODEL_SEED);

const MANY = 500;

/** Something that random histories check, in a database of its own. */
export interface Checkable {
  readonly name: string;
  /** Things that must happen in the histories of each run; otherwise they prove little. */
  readonly usual: readonly string[];
  /** Things that happen in one history of thirty or fewer, and must happen in {@link MANY}. */
  readonly seldom: readonly string[];
  check(options: {
    readonly db: number;
    readonly runs: number;
    readonly seed?: number | undefined;
    readonly path?: string | undefined;
    readonly hurry?: boolean;
  }): Promise<Report>;
}

/** `HOLDFAST_MODEL_RUNS` is the number of histories of each kind; a failure prints how to run its history again. */
export function playHistories(file: string, enough: number, kinds: readonly Checkable[]): void {
  const runs = Number(HOLDFAST_MODEL_RUNS ?? enough);
  describe.concurrent("random histories", () => {
    test.each(kinds.map((kind, db) => ({ kind, db, title: kind.name })))(
      "$title",
      async ({ kind, db }) => {
        const report = await kind.check({ db, runs, seed, path });
        if (report.failure) {
          const replay = `HOLDFAST_MODEL_SEED=${report.seed} HOLDFAST_MODEL_PATH=${report.failure.path}`;
          const again = `${replay} npx vitest run test/model/${file} -t "${kind.name}"`;
          expect.fail(`${report.failure.text}\n\nTo run it again:\n${again}`);
        }
        if (report.runs < enough) return;
        const expected = report.runs < MANY ? kind.usual : [...kind.usual, ...kind.seldom];
        expect(expected.filter((what) => !report.seen.has(what))).toEqual([]);
      },
      600_000,
    );
  });
}

/** The test of the test: the same histories find each mistake that is planted into the library. */
export function findMistakes(
  mistakes: readonly { readonly kind: string; readonly title: string; plant(): () => void }[],
  kinds: readonly Checkable[],
): void {
  test.each(mistakes)(
    "$kind: $title",
    async ({ kind: name, plant }) => {
      const kind = kinds.find((candidate) => candidate.name === name);
      if (!kind) throw new Error(`there is no ${name}`);
      const repair = plant();
      try {
        const report = await kind.check({ db: 0, runs: 500, seed: 1, hurry: true });
        expect(report.failure).toBeDefined();
      } finally {
        repair();
      }
    },
    120_000,
  );
}
