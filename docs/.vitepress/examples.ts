/** A page for each example, be it a file or a folder, with all of its code. */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GENERATED, ROOT } from "./pages.js";

const FOLDER = join(ROOT, "examples");

/** Of a folder its main.mjs, where one begins to read, before the rest. */
function filesOf(name: string): string[] {
  if (!statSync(join(FOLDER, name)).isDirectory()) return [name];
  const files = readdirSync(join(FOLDER, name)).filter(
    (file) => file.endsWith(".mjs") && file !== "main.mjs",
  );
  return ["main.mjs", ...files.sort()].map((file) => `${name}/${file}`);
}

function code(file: string): string {
  return `\`\`\`\`${file.endsWith(".ts") ? "ts" : "js"}\n${readFileSync(join(FOLDER, file), "utf8")}\`\`\`\`\n`;
}

/** Called by the configuration, since VitePress looks for pages right after it. */
export function writeExamplePages(): void {
  const to = join(ROOT, GENERATED, "examples");
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(FOLDER).filter((each) => !each.endsWith(".md"))) {
    const title = name.replace(/\.[a-z]+$/, "");
    const parts = filesOf(name).map((file) => `## ${file}\n\n${code(file)}`);
    writeFileSync(join(to, `${title}.md`), `# Example: ${title}\n\n${parts.join("\n")}`);
  }
}
