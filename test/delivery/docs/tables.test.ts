/** The tables of options and events have what the code has. */
import { expect, test } from "vitest";
import { Events } from "../../../src/base/events.js";
import { checkClientOptions } from "../../../src/client-options.js";
import { allPages } from "./pages.js";

/** The second cells of a page's first table, by its first cells, both without their code marks. */
function firstTable(file: string): Record<string, string> {
  const text = allPages().find((page) => page.file === file)?.text ?? "";
  const [table = ""] = /(^\|.*\n)+/m.exec(text) ?? [];
  const rows = table.matchAll(/^\| `(\w+)` *\| *([^|]*?) *\|/gm);
  return Object.fromEntries(Array.from(rows, ([, name, cell = ""]) => [name, cell.replaceAll("`", "")]));
}

test("docs/options.md has each option of a client, with its default", () => {
  // What stands there for a default that is no value: an empty prefix is none.
  const words: Record<string, string> = { prefix: "none", label: "host:pid", warnAfter: "off" };
  const { clock, random, exactTimers, onMade, ...defaults } = checkClientOptions({});
  const written = Object.entries(defaults).map(([name, value]) => [
    name,
    words[name] ?? (typeof value === "number" ? `${value}`.replace(/(?=000$)/, " ") : JSON.stringify(value)),
  ]);
  expect(firstTable("docs/options.md")).toEqual(Object.fromEntries(written));
});

test("docs/events.md has each event of a client", () => {
  const wrong = () => new Events().listen("on", "none" as "lost", () => {});
  const known = `event must be one of ${Object.keys(firstTable("docs/events.md")).join(", ")}, not`;
  expect(wrong).toThrow(known);
});
