/**
 * The tables of the migration pages: the code in their column "here" is run, row by row; types.test.ts checks its
 * types. After the code there may be its value, or how it rejects: `lock.tryLock()` → `Hold`.
 */
import { describe, expect, test } from "vitest";
import { forFile } from "../../support/index.js";
import { MIGRATION_PAGES, programOf, rowsOf } from "./migration-rows.js";
import { BlockRunner } from "./runner.js";

/** Milliseconds: long, because a page has many rows and some of them wait. */
const LONGEST_PAGE = 60_000;

const runner = await forFile(BlockRunner.start());

describe.each(MIGRATION_PAGES)("$file", (page) => {
  const rows = rowsOf(page);

  test(`its ${rows.length} rows with code do what they say`, async () => {
    expect(rows.length).toBeGreaterThan(20);
    await runner.run(programOf(page, true), LONGEST_PAGE);
  });
});
