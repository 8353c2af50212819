/** Follows each link of a site that is built, the menu's too: to a page, a file, a chapter. VitePress itself asks for pages alone. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

interface Page {
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly string[];
}

export interface Links {
  readonly pages: number;
  readonly links: number;
  /** `guide.html: /none.html` */
  readonly dead: readonly string[];
}

/** Links to other sites are neither counted nor followed. */
export function checkLinks(site: string, base: string): Links {
  const names = readdirSync(site, { recursive: true, encoding: "utf8" });
  const pages = new Map(
    names.filter((name) => name.endsWith(".html")).map((name) => [name, pageAt(site, name)]),
  );
  const isDead = (from: string, link: string): boolean => {
    const [path = "", anchor] = link.split("#");
    const inside = path.startsWith(base) ? path.slice(base.length) : posix.join(posix.dirname(from), path);
    const name = inside === "" || inside.endsWith("/") ? `${inside}index.html` : inside;
    const page = pages.get(path === "" ? from : name);
    if (!page) return !existsSync(join(site, name));
    return Boolean(anchor) && !page.anchors.has(anchor ?? "");
  };
  const links = [...pages].flatMap(([from, page]) => page.links.map((link) => ({ from, link })));
  const dead = links
    .filter(({ from, link }) => isDead(from, link))
    .map(({ from, link }) => `${from}: ${link}`);
  return { pages: pages.size, links: links.length, dead };
}

function pageAt(site: string, name: string): Page {
  const html = readFileSync(join(site, name), "utf8");
  const all = (pattern: RegExp): string[] =>
    [...html.matchAll(pattern)].map(([, text = ""]) => decodeURIComponent(text.replaceAll("&amp;", "&")));
  return {
    anchors: new Set(all(/\sid="([^"]+)"/g)),
    links: all(/<a\s[^>]*?href="([^"]+)"/g).filter((link) => !/^[a-z]+:/.test(link)),
  };
}
