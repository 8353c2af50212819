/**
 * Every block of code in the documentation is run. See plans.ts for the languages, sandbox/names.ts for the names that
 * a page takes for granted, and claims.ts for what comments claim.
 */
import { describe, expect, test } from "vitest";
import { forFile } from "../../support/index.js";
import { installVersions } from "../package/versions/install.js";
import { allPages, blocksOf } from "./pages.js";
import { planOf } from "./plans.js";
import { BlockRunner, needsVersions } from "./runner.js";

const blocks = allPages().flatMap(blocksOf);
const planned = blocks.map((block) => ({ block, plan: planOf(block) }));
const done: string[] = [];
const skipped: string[] = [];

/** `missing`: the reason why the packages that only pages use are not installed. */
const [runner, missing] = await Promise.all([forFile(BlockRunner.start()), installVersions()]);

describe("each block runs", () => {
  for (const { block, plan } of planned) {
    if (typeof plan === "object") continue;
    test(block.place, async ({ skip }) => {
      if (missing && needsVersions(block)) {
        skipped.push(block.place);
        skip(missing);
      }
      await (plan === "run" ? runner.run(block) : runner.send(block));
      done.push(block.place);
    });
  }
});

test("the HTTP service of docs/recipes.md runs on Express 4, too [B230]", async () => {
  const services = blocks.filter(({ code }) => code.includes('from "express"'));
  expect(services.map(({ file }) => file)).toContain("docs/recipes.md");
  for (const block of services)
    await runner.run({ ...block, code: block.code.replace('from "express"', 'from "express4"') });
});

const reasons = planned.flatMap(({ block, plan }) => (typeof plan === "object" ? [{ block, ...plan }] : []));
const perReason = [...new Set(reasons.map(({ because }) => because))].map((because) => {
  return `${reasons.filter((reason) => reason.because === because).length} ${because}`;
});

test(`${blocks.length} blocks found, ${blocks.length - reasons.length} run, ${reasons.length} not run: ${perReason.join("; ")}`, () => {
  expect(done.length + skipped.length + reasons.length).toBe(blocks.length);
  expect(done.length).toBeGreaterThan(0);
});
