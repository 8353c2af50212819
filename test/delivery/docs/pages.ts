/** The pages for readers, and the fenced blocks in them. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { anchorOf } from "../../../docs/.vitepress/pages.js";

export const ROOT: string = fileURLToPath(new URL("../../..", import.meta.url));

export interface Page {
  /** The path from the root of the repository. */
  readonly file: string;
  readonly text: string;
}

export interface Block {
  /** The place of the opening fence: `docs/guide.md:12`. */
  readonly place: string;
  readonly file: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
}

/** Folders without pages for readers: packages that are installed below, and the output of the bench. */
const FOREIGN = /^(node_modules|out)[\\/]/;

/** All Markdown files in the root and in these folders. */
export function allPages(): Page[] {
  const inRoot = readdirSync(ROOT).filter((name) => name.endsWith(".md"));
  const below = ["docs", "bench", "examples"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md") && !FOREIGN.test(name))
      .map((name) => join(folder, name)),
  );
  return [...inRoot, ...below].sort().map((file) => ({ file, text: readFileSync(join(ROOT, file), "utf8") }));
}

/** The text without its code blocks, which have no links and no headings. */
export function proseOf({ text }: Page): string {
  return text.replace(/^ *```.*?^ *```$/gms, "");
}

export interface Link {
  /** The target as it stands in the page. */
  readonly target: string;
  /** The file it leads to, from the root of the repository. */
  readonly file: string;
  readonly anchor: string | undefined;
}

/** The links of a page, except those to other sites. */
export function linksOf(page: Page): Link[] {
  const targets = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return targets
    .filter((target) => !/^https?:/.test(target))
    .map((target) => {
      const [path = "", anchor] = target.split("#");
      return { target, file: path ? normalize(join(dirname(page.file), path)) : page.file, anchor };
    });
}

/** The anchors of a page's headings. */
export function anchorsOf(page: Page): Set<string> {
  const headings = proseOf(page).matchAll(/^#+ (.+)$/gm);
  return new Set([...headings].map(([, text = ""]) => anchorOf(text)));
}

const FENCE = /^ *(```+|~~~+) *(\S*).*$/;

/** @throws for a fence that is never closed, because everything after it would be no block at all */
export function blocksOf({ file, text }: Page): Block[] {
  const blocks: Block[] = [];
  let open: { mark: string; language: string; line: number; code: string[] } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const [, mark = "", language = ""] = FENCE.exec(line) ?? [];
    if (!open) {
      if (mark) open = { mark, language, line: index + 1, code: [] };
    } else if (mark.startsWith(open.mark) && !language) {
      const place = `${file}:${open.line}`;
      blocks.push({ place, file, line: open.line, language: open.language, code: open.code.join("\n") });
      open = undefined;
    } else {
      open.code.push(line);
    }
  }
  if (open) throw new Error(`${file}:${open.line}: a fence that is never closed`);
  return blocks;
}
