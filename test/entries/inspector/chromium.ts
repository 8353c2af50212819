/** A real browser: Debian's package `chromium`, or the program that HOLDFAST_CHROMIUM names. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PATHS = [process.env.HOLDFAST_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser"];
const found = PATHS.find((path) => path !== undefined && existsSync(path));

/** The reason why the page cannot be tested here; undefined if it can. */
export const noChromium: string | undefined = found
  ? undefined
  : "there is no Chromium: install the package chromium, or name one in HOLDFAST_CHROMIUM";

const ALONE = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: found as string, args: ALONE });
}
