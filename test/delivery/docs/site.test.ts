/**
 * The menu of the site (docs/.vitepress) names each page once and nothing else, and the check of its links finds dead
 * ones.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { checkLinks } from "../../../docs/.vitepress/links.js";
import { addressOf, type Entry, GENERATED, MENU, targetOf } from "../../../docs/.vitepress/pages.js";
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

test("a page without an entry, and an entry without a page, are noticed", () => {
  expect(unnamed(entries, [...pages, { file: "docs/new.md", text: "" }])).toEqual(["docs/new.md"]);
  const wrong = ["docs/none.md", "docs/guide.md#none"].map((page) => ({ text: "", page }));
  expect(leadingNowhere([...entries, ...wrong])).toEqual(["docs/none.md", "docs/guide.md#none"]);
});

test("links of the repository lead to pages of the site, or to files that it brings along", () => {
  const page = (name: string) => ({ page: `${GENERATED}/examples/${name}.md` });
  const rows: [from: string, link: string, target: object][] = [
    ["docs/guide.md", "../bench/README.md", { page: "bench/README.md" }],
    ["docs/guide.md", "../examples/fenced-write", page("fenced-write")],
    ["examples/README.md", "fenced-write/main.mjs", page("fenced-write")],
    ["examples/README.md", "await-using.ts", page("await-using")],
    ["docs/otel.md", "grafana-dashboard.json", { file: "docs/grafana-dashboard.json" }],
    ["README.md", "docs/adr", { page: expect.stringMatching(/^docs\/adr\/0001-/) }],
  ];
  for (const [from, link, target] of rows) expect(targetOf(from, link)).toEqual(target);
});

let site: string | undefined;
afterEach(() => {
  if (site) rmSync(site, { recursive: true });
  site = undefined;
});

test("a built site's dead links are found: to a page, a file, a chapter", () => {
  site = mkdtempSync(join(tmpdir(), "holdfast-site-"));
  const a = (...links: string[]): string =>
    links.map((link) => `<a class="link" href="${link}">x</a>`).join("");
  const files = {
    "index.html": `<h2 id="top">${a("/base/a.html#part", "#top", "/base/", "/base/file.json", "https://x.example/none")}`,
    "a.html": `<h2 id="part">${a("#top", "none.html", "/base/deep/", "/base/none.json", "./deep/b.html#none")}`,
    "deep/index.html": a("b.html", "../a.html#part", "/a.html"),
    "deep/b.html": "",
    "file.json": "{}",
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(site, name)), { recursive: true });
    writeFileSync(join(site, name), text);
  }
  const { dead, ...counts } = checkLinks(site, "/base/");
  expect(counts).toEqual({ pages: 4, links: 12 });
  expect([...dead].sort()).toEqual([
    "a.html: #top",
    "a.html: ./deep/b.html#none",
    "a.html: /base/none.json",
    "a.html: none.html",
    "deep/index.html: /a.html",
  ]);
});
