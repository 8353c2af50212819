/** What the tests do with a block, by its language. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Block, ROOT } from "./pages.js";

/** `run`: as a program; `send`: line by line to a server; otherwise the reason for neither. */
export type Plan = "run" | "send" | { readonly because: string };

const RUN = new Set(["js", "ts"]);
const SEND = new Set(["redis", "conf"]);
/** A block that is no program, but a file for a test runner. */
const TESTS = /^import .* from "(vitest|@jest\/globals|node:test)";$/m;
/** Languages that are not run. JavaScript is ours under its short name `js` only. */
const NOT_RUN: Record<string, string> = {
  text: "a picture",
  java: "Java, which test/interop calls",
  javascript: "another library's, beside ours",
};

/** Shell commands, and the reason why the tests of the docs do not run them. */
const COMMANDS: [RegExp, because: string][] = [
  [/^npm (install|run [a-z]+|test)\b/, "npm, which other tests run"],
  [
    /^(npm run build && )?node (node_modules\/holdfast\/)?examples\/\S+$/,
    "an example, which test/delivery/examples runs",
  ],
  [/^holdfast [a-z]+\b/, "the program, which test/entries/cli runs"],
];

/** @throws for a block of an unknown language */
export function planOf(block: Block): Plan {
  const { language, place, code } = block;
  if (RUN.has(language) && TESTS.test(code)) return { because: "tests, which test/delivery/package runs" };
  if (RUN.has(language)) return "run";
  if (SEND.has(language)) return "send";
  if (language === "sh") return shellPlan(place, code);
  const because = NOT_RUN[language];
  if (because) return { because };
  throw new Error(`${place}: the tests know no blocks of "${language}"`);
}

function shellPlan(place: string, code: string): Plan {
  const reasons = code.split("\n").map((line) => {
    const command = line.replace(/ +#.*$/, "");
    const because = COMMANDS.find(([pattern]) => pattern.test(command))?.[1];
    if (!because) throw new Error(`${place}: the tests do not know the command "${command}"`);
    const file = /(?:^|&& )node (?:node_modules\/holdfast\/)?(\S+)$/.exec(command)?.[1];
    if (file && !existsSync(join(ROOT, file))) throw new Error(`${place}: there is no ${file}`);
    return because;
  });
  return { because: [...new Set(reasons)].join(", ") };
}
