/** The targets of the pages exist: files and chapters. */
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { allPages, anchorsOf, linksOf, type Page, proseOf, ROOT } from "./pages.js";

const pages = allPages();
const tests = new Set(
  readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" }).map((name) => basename(name)),
);

function brokenLinks(page: Page): string[] {
  const broken = linksOf(page).filter(({ file, anchor }) => {
    if (!existsSync(join(ROOT, file))) return true;
    const other = pages.find((candidate) => candidate.file === file);
    return anchor !== undefined && !(other && anchorsOf(other).has(anchor));
  });
  return broken.map(({ target }) => target);
}

/** `test/kinds`, `src/kinds/*.ts`, `wake-ups.test.ts`: missing paths in code spans; a span with <…> stands for many. */
function missingFiles(page: Page): string[] {
  const spans = [...proseOf(page).matchAll(/`([^`\s<>]+)`/g)].map(([, span = ""]) => span);
  return spans.filter((span) => {
    if (/^(test|src|lua|docs|examples|bench|tools)\//.test(span)) return !isThere(span);
    return /^[a-z-]+\.test\.ts$/.test(span) && !tests.has(span);
  });
}

function isThere(path: string): boolean {
  // The pages name decisions by their number.
  if (/^docs\/adr\/\d{4}$/.test(path)) return isThere(`${path}-*.md`);
  if (!path.includes("*")) return existsSync(join(ROOT, path)) || existsSync(join(ROOT, `${path}.mjs`));
  const pattern = new RegExp(`^${basename(path).replaceAll(".", "\\.").replaceAll("*", ".*")}$`);
  const folder = join(ROOT, dirname(path).replace(/\/\*\*$/, ""));
  return existsSync(folder) && readdirSync(folder).some((name) => pattern.test(name) || path.includes("**"));
}

describe.each(pages)("$file", (page) => {
  test("its links lead to files and chapters that are there", () => {
    expect(brokenLinks(page)).toEqual([]);
  });

  test("the files it names are there", () => {
    expect(missingFiles(page)).toEqual([]);
  });
});
