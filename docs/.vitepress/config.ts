/** The site of the documentation: the Markdown of this repository as it is, with a menu and a search around it. */
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { type DefaultTheme, defineConfig, type MarkdownRenderer } from "vitepress";
import { writeExamplePages } from "./examples.js";
import { checkLinks } from "./links.js";
import { addressOf, anchorOf, type Entry, GENERATED, MENU, ROOT, targetOf } from "./pages.js";

const LOCK =
  "data:image/svg+xml," +
  encodeURIComponent(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="M7 11V8a5 5 0 0 1 10 0v3" fill="none" stroke="#5672cd" stroke-width="2.6"/><rect x="4" y="10.5" width="16" height="11" rx="2.4" fill="#5672cd"/></svg>',
  );

/** A table of more columns gets the whole width of the page. */
const MOST_COLUMNS = 5;

/** Files that pages link to and that are no pages, such as a dashboard: they are copied. */
const files = new Set<string>();

/** `docs/guide.md#errors` → `/guide.html#errors` */
function urlOf(page: string): string {
  const [file = "", anchor] = page.split("#");
  const url = `/${addressOf(file)}`.replace(/\.md$/, ".html").replace(/\/index\.html$/, "/");
  return anchor === undefined ? url : `${url}#${anchor}`;
}

/** Links lead through the repository, as they do on GitHub; here they have to lead through the site. */
function linksOfTheSite(md: MarkdownRenderer): void {
  md.core.ruler.push("links of the site", ({ tokens, env }) => {
    const page = relative(ROOT, env.realPath ?? env.path).replaceAll(sep, "/");
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      const [, path, anchor = ""] = /^([^#:]+)(#.*)?$/.exec(href ?? "") ?? [];
      if (!path) continue;
      const target = targetOf(page, path);
      if ("page" in target) token.attrSet("href", urlOf(target.page) + anchor);
      else if (existsSync(join(ROOT, target.file))) {
        files.add(target.file);
        token.attrSet("href", `/files/${target.file}`);
      }
    }
  });
}

function roomForTables(md: MarkdownRenderer): void {
  md.core.ruler.push("room for tables", ({ tokens, env }) => {
    const heads = tokens.filter(({ type }) => type === "tr_open" || type === "th_open");
    const widths = heads.map((_, i) => heads.slice(i + 1).findIndex(({ type }) => type === "tr_open"));
    if (Math.max(...widths) <= MOST_COLUMNS) return;
    env.frontmatter = { ...env.frontmatter, aside: false, pageClass: "wide" };
  });
}

/** Blocks of code that are only indented look like the others. */
function indentedBlocks(md: MarkdownRenderer): void {
  md.core.ruler.push("indented blocks", ({ tokens }) => {
    for (const token of tokens.filter(({ type }) => type === "code_block")) {
      token.type = "fence";
      token.info = "sh";
    }
  });
}

const item = ({ text, page }: Entry) => ({ text, link: urlOf(page) });

const groups = MENU.map(({ text, page, entries }) => ({
  text,
  ...(page && { link: urlOf(page) }),
  // Open is the group with the page that is read, and at first the guide.
  collapsed: text !== "Guide",
  items: entries.map(item),
}));

const reference = join(ROOT, GENERATED, "reference/typedoc-sidebar.json");

function referenceMenu(): DefaultTheme.SidebarItem[] {
  if (!existsSync(reference)) return [];
  return JSON.parse(readFileSync(reference, "utf8"));
}

const link = (text: string, page: string) => ({ text, link: urlOf(page) });
const menuOf = (name: string) => groups.find(({ text }) => text === name)?.items ?? [];

writeExamplePages();

export default defineConfig({
  title: "holdfast",
  description: "Distributed locks for Node.js on Redis",
  base: process.env.HOLDFAST_DOCS_BASE ?? "/",
  srcDir: "..",
  srcExclude: ["{coverage,dist,interop,lua,src,target,test,tools,web}/**", "out/!(docs)/**", "bench/out/**"],
  outDir: "../out/site",
  cacheDir: "../out/site-cache",
  rewrites: addressOf,
  // The index of the search is as large, and fetched when somebody searches.
  vite: { build: { chunkSizeWarningLimit: 1_500 } },
  head: [["link", { rel: "icon", href: LOCK }]],
  markdown: {
    anchor: { slugify: anchorOf },
    languageAlias: { redis: "sh", conf: "ini" },
    config: (md) => {
      md.use(linksOfTheSite);
      md.use(roomForTables);
      md.use(indentedBlocks);
    },
  },
  themeConfig: {
    logo: LOCK,
    search: {
      provider: "local",
      options: {
        // What is told comes before what is listed.
        miniSearch: {
          searchOptions: { boostDocument: (id: string) => (id.includes("/reference/") ? 0.5 : 1) },
        },
      },
    },
    outline: [2, 3],
    nav: [
      { ...link("Guide", "docs/guide.md"), activeMatch: "/guide" },
      link("Recipes", "docs/recipes.md"),
      { text: "Entries", items: menuOf("Beside the core") },
      { text: "Operations", items: [...menuOf("Operations"), ...menuOf("Migrations")] },
      { text: "Guarantees", items: menuOf("Guarantees") },
      { ...link("API", `${GENERATED}/reference/index.md`), activeMatch: "/reference/" },
    ],
    sidebar: { "/reference/": referenceMenu(), "/": groups },
  },
  transformPageData(page) {
    if (page.relativePath !== "index.md") return;
    page.frontmatter.layout = "home";
    page.frontmatter.hero = {
      name: "holdfast",
      text: "Distributed locks for Node.js on Redis",
      tagline: "Reentrant, woken by message, honest about loss, and on Redisson's wire format.",
      actions: [
        { theme: "brand", ...link("Guide", "docs/guide.md") },
        { theme: "alt", ...link("Which kind", "docs/guide.md#which-kind") },
        { theme: "alt", ...link("Recipes", "docs/recipes.md") },
        { theme: "alt", ...link("What is guaranteed", "docs/guarantees.md") },
      ],
    };
  },
  buildEnd({ outDir, site: { base } }) {
    for (const file of files) {
      const to = join(outDir, "files", file);
      mkdirSync(dirname(to), { recursive: true });
      copyFileSync(join(ROOT, file), to);
    }
    const { pages, links, dead } = checkLinks(outDir, base);
    console.log(`${pages} pages, ${links} links`);
    if (dead.length > 0) throw new Error(`links that lead nowhere:\n${dead.join("\n")}`);
  },
});
