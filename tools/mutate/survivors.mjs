// Changes of the TypeScript that the tests in virtual time do not notice though others might, and why: `survivors.txt` lists
// them by reason, a line `# reason` before the changes that it holds for.
import { readFileSync } from "node:fs";

/** @returns {ReadonlyMap<string, string>} by title, as `file: line -> line` */
export function readSurvivors() {
  const reasons = new Map();
  let reason = "";
  for (const line of readFileSync(new URL("survivors.txt", import.meta.url), "utf8").split("\n")) {
    if (line.startsWith("# ")) reason = line.slice(2);
    else if (line !== "") reasons.set(line, reason);
  }
  return reasons;
}
