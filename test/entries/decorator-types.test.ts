/** The types of decorators, as the compiler judges them with standard and with experimental decorators. */
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";
import { PATIENCE } from "../support/index.js";

const FILE = fileURLToPath(new URL("decorated-types.ts", import.meta.url));

test.each([
  { way: "standard", experimentalDecorators: false },
  { way: "experimental", experimentalDecorators: true },
])(
  "the function of the name has to take all that the method takes: by a $way decorator [B229] [B259]",
  ({ experimentalDecorators }) => {
    const program = ts.createProgram([FILE], {
      target: ts.ScriptTarget.ES2022,
      lib: ["lib.es2022.d.ts", "lib.esnext.disposable.d.ts"],
      module: ts.ModuleKind.NodeNext,
      types: ["node"],
      strict: true,
      skipLibCheck: true,
      noEmit: true,
      experimentalDecorators,
    });
    const told = program
      .getSemanticDiagnostics(program.getSourceFile(FILE))
      .map(({ start, messageText }) => [start, ts.flattenDiagnosticMessageText(messageText, "\n")]);
    expect(told).toEqual([]);
  },
  10 * PATIENCE,
);
