/** The version of the package that this program came with. */
import { readFileSync } from "node:fs";

export function version(): string {
  // The program is built to a file beside the folder of the package's own description.
  const description = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return String((JSON.parse(description) as { version: string }).version);
}
