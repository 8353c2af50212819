/** `holdfast explain`: what an error means, in the words of the guide that came with this program. */
import { readFileSync } from "node:fs";
import { type Command, EXIT, UsageError } from "./command.js";

export const explain: Command = {
  name: "explain",
  usage: "<code>",
  summary: "prints what an error code means, and what to do",
  details: ["It prints the section of docs/guide.md that the text of each error names."],
  words: { least: 1, most: 1 },
  act: async ({ words: [word = ""], terminal }) => {
    const sections = sectionsOfGuide();
    const code = word.toUpperCase();
    const text = sections.get(code);
    if (text === undefined) {
      const known = [...sections.keys()].join(", ");
      throw new UsageError(`explain: ${JSON.stringify(word)} is no error code; the codes are ${known}`);
    }
    terminal.json({ code, text });
    terminal.say(code, "bold");
    for (const line of text.split("\n")) terminal.say(line);
    return EXIT.ok;
  },
};

/** The sections of the guide that have the name of an error code. */
function sectionsOfGuide(): ReadonlyMap<string, string> {
  // The built program is in a folder next to that of the pages.
  const guide = readFileSync(new URL("../docs/guide.md", import.meta.url), "utf8");
  const sections = guide.split(/^(?=#{2,3} )/m).flatMap((section): [string, string][] => {
    const [, code, text = ""] = /^### ([A-Z_]+)\n([\s\S]*)$/.exec(section) ?? [];
    return code === undefined ? [] : [[code, text.trim()]];
  });
  return new Map(sections);
}
