/**
 * The doc comments of the package's declarations, as editors show them: every public name has one, and its example
 * compiles.
 */
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
import { programOf } from "../docs/program.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const DIST = `${ROOT}dist/`;
const ENTRIES = Object.keys(manifest.exports).filter((path) => !path.endsWith(".json"));

/** Declarations that an example may use without its own. */
const SCENE = `import { createServer } from "node:http";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import express from "express";
import fastify from "fastify";
import type { Redis } from "ioredis";
import { createClient } from "redis";
declare const redis: Redis;
declare function sell(id: string, how?: object): Promise<void>;
`;
const SCENE_OF_NAMES: Readonly<Record<string, string>> = {
  client: `declare const client: import("holdfast").LockClient;`,
  AppModule: "declare class AppModule {}",
};

const OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts", "lib.dom.d.ts"],
  types: ["node"],
  strict: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  noEmit: true,
  paths: Object.fromEntries(ENTRIES.map((entry) => [moduleOf(entry), [declarationsOf(entry)]])),
};

function moduleOf(entry: string): string {
  return `holdfast${entry.slice(1)}`;
}
function declarationsOf(entry: string): string {
  return `${DIST}${entry === "." ? "index" : entry.slice("./".length)}.d.ts`;
}

interface Declared {
  /** Such as `Lock.unlock`. */
  readonly name: string;
  readonly entry: string;
  readonly symbol: ts.Symbol;
  readonly owner?: ts.Symbol;
}

const program = ts.createProgram(ENTRIES.map(declarationsOf), OPTIONS);
const checker = program.getTypeChecker();

const isOurs = ({ declarations }: ts.Symbol) =>
  declarations?.[0]?.getSourceFile().fileName.startsWith(DIST) === true;

/** Each export, at the first entry that has it, and its members. */
function* declared(): Generator<Declared> {
  const seen = new Set<ts.Symbol>();
  for (const entry of ENTRIES) {
    const file = program.getSourceFile(declarationsOf(entry));
    const module = file && checker.getSymbolAtLocation(file);
    for (const exported of module ? checker.getExportsOfModule(module) : []) {
      const isAlias = exported.flags & ts.SymbolFlags.Alias;
      const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported;
      if (seen.has(symbol) || !isOurs(symbol)) continue;
      seen.add(symbol);
      yield { name: symbol.name, entry, symbol };
      for (const member of membersOf(symbol)) {
        yield { name: `${symbol.name}.${member.name}`, entry, symbol: member, owner: symbol };
      }
    }
  }
}

function membersOf(symbol: ts.Symbol): ts.Symbol[] {
  const isType = symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias);
  const type = isType ? checker.getDeclaredTypeOfSymbol(symbol) : undefined;
  const members = type?.isClassOrInterface() ? [...(symbol.members?.values() ?? [])] : type?.getProperties();
  return (members ?? []).filter((member) => {
    const [declaration] = member.declarations ?? [];
    const isPrivate =
      declaration && ts.getCombinedModifierFlags(declaration as ts.Declaration) & ts.ModifierFlags.Private;
    return (
      isOurs(member) &&
      !isPrivate &&
      !/^(__|#)/.test(member.name) &&
      !(member.flags & ts.SymbolFlags.TypeParameter)
    );
  });
}

const ALL = [...declared()];

const textOf = ({ symbol }: Declared) => ts.displayPartsToString(symbol.getDocumentationComment(checker));
const tagsOf = ({ symbol }: Declared, name: string) =>
  symbol
    .getJsDocTags(checker)
    .filter((tag) => tag.name === name)
    .map(({ text }) => ts.displayPartsToString(text));

/** Whether it is a method that resolves, or takes a name. */
function mayFail({ symbol, owner }: Declared): boolean {
  if (!(symbol.flags & ts.SymbolFlags.Method) || !owner || !(owner.flags & ts.SymbolFlags.Class))
    return false;
  const [declaration] = symbol.declarations ?? [];
  const signature = declaration && checker.getSignatureFromDeclaration(declaration as ts.MethodDeclaration);
  if (!signature) return false;
  const isAsync = /^(Promise|AsyncGenerator)</.test(checker.typeToString(signature.getReturnType()));
  return isAsync || signature.getParameters()[0]?.name === "name";
}

test("every exported name and every public member says what it is", () => {
  expect(ALL.length).toBeGreaterThan(350);
  expect(ALL.filter((each) => textOf(each) === "").map(({ name }) => name)).toEqual([]);
});

test("every call that resolves or takes a name says how it fails", () => {
  const silent = ALL.filter(mayFail).filter(
    (each) => tagsOf(each, "throws").length === 0 && !/Never rejects|See \{@link/.test(textOf(each)),
  );
  expect(silent.map(({ name }) => name)).toEqual([]);
});

/** Errors have their example at `isLockError`; the Lock of holdfast/redlock has it at Redlock. */
const needsExample = ({ symbol, entry, owner }: Declared) =>
  owner === undefined &&
  (symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Function | ts.SymbolFlags.BlockScopedVariable)) !==
    0 &&
  !/Error$|^LockFace$/.test(symbol.name) &&
  !(entry === "./redlock" && symbol.name === "Lock");

test("every class and function has an example, and it compiles", () => {
  const examples = ALL.filter(needsExample).map((each) => ({
    ...each,
    code: tagsOf(each, "example").join("\n"),
  }));
  expect(examples.filter(({ code }) => code === "").map(({ name }) => name)).toEqual([]);
  const files = new Map(
    examples.map((each, i) => [`${ROOT}test/delivery/package/example-${i}.mts`, exampleModule(each)]),
  );
  const built = programOf(files, OPTIONS, program);
  const wrong = ts.getPreEmitDiagnostics(built).map(({ file, messageText, start = 0 }) => {
    const line = file?.text.slice(file.text.lastIndexOf("\n", start) + 1).split("\n")[0];
    return `${line}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
  });
  expect(wrong).toEqual([]);
});

/** The example as a module, with imports of all that its entry, the root and the inspector export. */
function exampleModule({ entry, code }: Declared & { code: string }): string {
  const sources = new Map<string, string>();
  // The entry's own exports come last, because they replace exports of the same name.
  for (const each of [".", "./inspector", entry])
    for (const other of ALL)
      if (other.owner === undefined && other.entry === each) sources.set(other.name, each);
  const imports = [...sources].map(([name, from]) => `import { ${name} } from "${moduleOf(from)}";`);
  const scene = Object.entries(SCENE_OF_NAMES).filter(
    ([name]) => !new RegExp(`(const|class) ${name}\\b`).test(code),
  );
  return `${SCENE}${imports.join("\n")}\n${scene.map(([, text]) => text).join("\n")}\n${code.replaceAll("\\@", "@")}\nexport {};\n`;
}
