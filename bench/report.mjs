// `node bench/report.mjs bench/out`: takes a run as the newest one: its results.json, plots and tables to bench/results/, and
// the tables between the markers of README.md.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { pageOf, partsOf } from "./lib/page.mjs";
import { plotsOf } from "./lib/plots.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));

/** Writes the plots and the page of a run beside its results.json. */
export function writeReport(results, folder) {
  mkdirSync(folder, { recursive: true });
  const plots = plotsOf(results);
  for (const [name, svg] of Object.entries(plots)) writeFileSync(join(folder, name), svg);
  writeFileSync(join(folder, "tables.md"), pageOf(results, plots));
  return plots;
}

/**
 * Replaces what stands between `<!-- name -->` and `<!-- /name -->`; of what the run has nothing, the old stays.
 * @public to its test
 */
export function refreshed(page, parts) {
  let text = page;
  for (const [name, lines] of Object.entries(parts)) {
    const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    const from = text.indexOf(open);
    const to = text.indexOf(close);
    if (from < 0 || to < from) throw new Error(`README.md has no ${open} with its end`);
    const inner = lines.filter((line) => line !== "").join("\n\n");
    if (inner === "") continue;
    text = `${text.slice(0, from + open.length)}\n\n${inner}\n\n${text.slice(to)}`;
  }
  return text;
}

function publish(folder) {
  const json = readFileSync(join(resolve(folder), "results.json"), "utf8");
  const results = JSON.parse(json);
  const target = join(HERE, "results");
  const plots = writeReport(results, target);
  writeFileSync(join(target, "results.json"), json);
  const readme = join(HERE, "README.md");
  writeFileSync(readme, refreshed(readFileSync(readme, "utf8"), partsOf(results, plots, "results/")));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) throw new Error("which run? node bench/report.mjs <folder with results.json>");
  publish(folder);
}
