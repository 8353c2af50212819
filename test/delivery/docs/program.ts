/** TypeScript's compiler for texts that are in no file. */
import ts from "typescript";

/** A program of these texts, by their paths; their imports are those of `known`, or are read from the disk. */
export function programOf(
  texts: ReadonlyMap<string, string>,
  options: ts.CompilerOptions,
  known?: ts.Program,
): ts.Program {
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (path) => texts.has(path) || fileExists.call(host, path);
  host.readFile = (path) => texts.get(path) ?? readFile.call(host, path);
  host.getSourceFile = (path, version, ...rest) => {
    const text = texts.get(path);
    return text === undefined
      ? (known?.getSourceFile(path) ?? getSourceFile.call(host, path, version, ...rest))
      : ts.createSourceFile(path, text, version);
  };
  return ts.createProgram([...texts.keys()], options, host);
}
