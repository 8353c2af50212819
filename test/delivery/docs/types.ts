/** Type-checks blocks in one program, against the library's sources and the names of the sandbox. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { versionFolder } from "../package/versions/install.js";
import { type Block, ROOT } from "./pages.js";
import { programOf } from "./program.js";

const NAMES = join(ROOT, "test/delivery/docs/sandbox/names.ts");
const GLOBALS = join(ROOT, "docs-globals.d.ts");

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2022.d.ts", "lib.esnext.disposable.d.ts"],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  moduleDetection: ts.ModuleDetectionKind.Force,
  types: ["node"],
  paths: {
    holdfast: [join(ROOT, "src/index.ts")],
    "holdfast/*": [join(ROOT, "src/entries/*.ts")],
    bullmq: [join(versionFolder("bullmq"), "dist/esm/index.d.ts")],
  },
  strict: true,
  skipLibCheck: true,
  noEmit: true,
};

/** Errors "… implicitly has an 'any' type", which are ignored because most blocks are JavaScript. */
const UNTYPED = new Set([7005, 7006, 7031, 7034]);

/** `docs/guide.md:12: Cannot find name 'readCuont'`, for each error in a block. */
export function typeErrors(blocks: readonly Block[]): string[] {
  const texts = new Map([[GLOBALS, globals()]]);
  const pageOf = new Map<string, string>();
  for (const { file, line, code } of blocks) {
    const path = join(ROOT, `${file}.${line}.ts`);
    pageOf.set(path, file);
    // Empty lines before the block, so that every error shows the line of the page.
    texts.set(path, "\n".repeat(line) + code);
  }
  const program = programOf(texts, OPTIONS);
  const diagnostics = ts.getPreEmitDiagnostics(program).filter(({ code }) => !UNTYPED.has(code));
  return diagnostics.map(({ file, start = 0, messageText }) => {
    const text = ts.flattenDiagnosticMessageText(messageText, "\n");
    if (!file) return text;
    const { line } = file.getLineAndCharacterOfPosition(start);
    return `${pageOf.get(file.fileName) ?? file.fileName}:${line + 1}: ${text}`;
  });
}

/** Every name that the sandbox exports, as a global. */
function globals(): string {
  const source = ts.createSourceFile(NAMES, readFileSync(NAMES, "utf8"), ts.ScriptTarget.ESNext);
  const isExported = (node: ts.Node) =>
    ts.canHaveModifiers(node) &&
    ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
  const names = source.statements.filter(isExported).flatMap((statement) => {
    if (ts.isFunctionDeclaration(statement)) return statement.name?.text ?? [];
    if (!ts.isVariableStatement(statement)) return [];
    return statement.declarationList.declarations.map(({ name }) => name.getText(source));
  });
  const lines = names.map(
    (name) => `  const ${name}: (typeof import("./test/delivery/docs/sandbox/names.js"))["${name}"];`,
  );
  return `declare global {\n${lines.join("\n")}\n}\nexport {};\n`;
}
