/** One word, one meaning: the glossary of ARCHITECTURE.md is short, and the code uses its words. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./pages.js";

const MOST_WORDS = 14;

test(`the glossary has at most ${MOST_WORDS} words, and src uses each`, () => {
  const [, table = ""] =
    /\n\| word .*\n.*\n((?:\|.*\n)+)/.exec(readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8")) ?? [];
  const words = Array.from(table.matchAll(/^\| *([^|]+?) *\|/gm), ([, word = ""]) =>
    word.replaceAll("`", ""),
  );
  expect(words.length).toBeGreaterThan(8);
  expect(words.length).toBeLessThanOrEqual(MOST_WORDS);
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const source = files
    .map((file) => readFileSync(join(ROOT, "src", file), "utf8"))
    .join()
    .toLowerCase();
  const isUsed = (word: string) =>
    source.includes(word.toLowerCase()) || source.includes(word.toLowerCase().replaceAll(/[ -]/g, ""));
  expect(words.flatMap((cell) => cell.split(", ")).filter((word) => !isUsed(word))).toEqual([]);
});
