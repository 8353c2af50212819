/** All code of the pages has the types that a reader's compiler sees: one program of it, since the library is compiled, too. */
import { beforeAll, expect, test } from "vitest";
import { installVersions } from "../package/versions/install.js";
import { MIGRATION_PAGES, pageWith, programOf } from "./migration-rows.js";
import { allPages, type Block, blocksOf } from "./pages.js";
import { planOf } from "./plans.js";
import { GOOD, planted } from "./planted.js";
import { needsVersions } from "./runner.js";
import { typeErrors } from "./types.js";

/** Milliseconds: long, because other files compile at the same time. */
const COMPILING = 300_000;

const missing = await installVersions();
const blocks = allPages()
  .flatMap(blocksOf)
  .filter((block) => planOf(block) === "run" && !(missing && needsVersions(block)));
const rows = MIGRATION_PAGES.map((page) => programOf(page, false));
const PLANTED: readonly Block[] = [
  { ...GOOD, file: "docs/good.md" },
  planted("ts", "await lock.lokc();", "await lock.lock({ lase: 1_000 });", "await readCuont();"),
  { ...programOf(pageWith("`lock.lock({ lase: 1 })`"), false), file: "docs/rows.md" },
];

let errors: readonly string[];
beforeAll(() => {
  errors = typeErrors([...blocks, ...rows, ...PLANTED]);
}, COMPILING);

const isPlanted = (error: string) => PLANTED.some(({ file }) => error.startsWith(file));

test(`all ${blocks.length} programs, and the rows of ${rows.length} pages about migration`, () => {
  expect(blocks.length).toBeGreaterThan(0);
  expect(errors.filter((error) => !isPlanted(error))).toEqual([]);
});

test("a method, an option, and a name that are not there are noticed, with their lines, and nothing in what is right", () => {
  expect(errors.filter(isPlanted)).toEqual([
    expect.stringMatching(/^docs\/page\.md:4: Property 'lokc' does not exist/),
    expect.stringMatching(/^docs\/page\.md:5: .*'lase' does not exist/),
    expect.stringMatching(/^docs\/page\.md:6: Cannot find name 'readCuont'/),
    expect.stringMatching(/^docs\/rows\.md:5: .*'lase' does not exist/),
  ]);
});
