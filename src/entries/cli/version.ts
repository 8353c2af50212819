/** Reads the version of the package that this program came with. */
import { readFileSync } from "node:fs";

export function version(): string {
  // The built program is in a folder next to package.json.
  const description = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return String((JSON.parse(description) as { version: string }).version);
}
