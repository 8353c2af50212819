/** The menu of the site (docs/.vitepress) names each page once and nothing else. */
import { expect, test } from "vitest";
import { addressOf, type Entry, GENERATED, MENU } from "../../../docs/.vitepress/pages.js";
import { allPages, anchorsOf, type Page } from "./pages.js";

const pages = allPages();
const entries = MENU.flatMap(({ text, page, entries }) => [...(page ? [{ text, page }] : []), ...entries]);

const unnamed = (menu: readonly Entry[], all: readonly Page[]): string[] =>
  all.map(({ file }) => file).filter((file) => !menu.some(({ page }) => page.split("#")[0] === file));

/** Entries whose page or chapter does not exist. */
function leadingNowhere(menu: readonly Entry[]): string[] {
  const written = menu.map(({ page }) => page).filter((page) => !page.startsWith(`${GENERATED}/`));
  return written.filter((entry) => {
    const [file, anchor] = entry.split("#");
    const page = pages.find((each) => each.file === file);
    return !page || (anchor !== undefined && !anchorsOf(page).has(anchor));
  });
}

test("the menu names every page, and no page or chapter that is not there", () => {
  expect(pages.length).toBeGreaterThan(20);
  expect(unnamed(entries, pages)).toEqual([]);
  expect(leadingNowhere(entries)).toEqual([]);
  expect(new Set(pages.map(({ file }) => addressOf(file))).size).toBe(pages.length);
});
