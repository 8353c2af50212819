// What has run of the library's sources when a lock is taken and given back, as V8 tells of the bundle, mapped back.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { SourceMap } from "node:module";
import { tmpdir } from "node:os";
import { join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { startServer } from "../../examples/server.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const WORKER = fileURLToPath(new URL("worker.mjs", import.meta.url));

/**
 * Resolves with the steps of a walk in the order in which they begin. Each is `{ file, name, from, to, depth, lines }`,
 * where `lines` are those of the file that have run. `walk` is one of those in worker.mjs.
 */
export async function stepsOf(walk) {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-path-"));
  const server = await startServer(folder);
  try {
    const bundle = join(folder, "worker.cjs");
    await build({
      entryPoints: [WORKER],
      outfile: bundle,
      bundle: true,
      external: ["ioredis"],
      platform: "node",
      target: "node20",
      format: "cjs",
      sourcemap: "linked",
      logLevel: "error",
    });
    return mapped(new Sources(bundle), await run({ port: server.port, walk, bundle }));
  } finally {
    server.child.kill();
    await once(server.child, "exit");
    rmSync(folder, { recursive: true });
  }
}

async function run(order) {
  const child = fork(order.bundle, { env: { ...process.env, NODE_PATH: join(ROOT, "node_modules") } });
  child.send(order);
  return new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("exit", (code) => reject(new Error(`the process that was watched ended (${code})`)));
  });
}

/** The bundle, and where each place of it comes from. */
class Sources {
  constructor(bundle) {
    this.text = readFileSync(bundle, "utf8");
    const map = JSON.parse(readFileSync(`${bundle}.map`, "utf8"));
    this.map = new SourceMap(map);
    this.bundle = bundle;
    this.starts = [0, ...Array.from(this.text.matchAll(/\n/g), ({ index }) => index + 1)];
    this.lines = new Map(map.sources.map((name, i) => [this.#file(name), map.sourcesContent[i].split("\n")]));
  }

  #file(name) {
    return relative(ROOT, resolve(this.bundle, "..", name)).replaceAll(sep, "/");
  }

  /** `{ file, line }` of a line and column of the bundle, both from 0; undefined unless the library's own. */
  at(line, column) {
    const { originalSource, originalLine } = this.map.findEntry(line, column);
    if (originalSource === undefined) return undefined;
    const file = this.#file(originalSource);
    return file.startsWith("src/") ? { file, line: originalLine + 1 } : undefined;
  }

  /** The same of an offset. */
  atOffset(offset) {
    let [low, high] = [0, this.starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= offset) low = middle;
      else high = middle;
    }
    return this.at(low, offset - this.starts[low]);
  }

  /** Whether there is more on a line than brackets. */
  hasCode({ file, line }) {
    return /\w/.test(this.lines.get(file)[line - 1]);
  }
}

function mapped(sources, { functions, noted }) {
  const steps = new Map();
  for (const [index, { functionName, ranges }] of functions.entries()) {
    const [{ startOffset, endOffset, count }] = ranges;
    const start = count > 0 && sources.atOffset(startOffset);
    if (!start) continue;
    const { file, line: from } = start;
    const { line: to } = sources.atOffset(endOffset - 1);
    const lines = linesOf(sources, ranges, functions);
    steps.set(index, {
      file,
      name: nameOf(functionName, sources.lines.get(file)[from - 1]),
      from,
      to,
      depth: 0,
      lines,
    });
  }
  return inOrder(sources, steps, noted);
}

/** What was not noted, initializers of fields, comes right before the first function of their class. */
function inOrder(sources, steps, noted) {
  const left = new Map(steps);
  for (const { index } of noted) left.delete(index);
  const ordered = [];
  for (const { index, callers } of noted) {
    const step = steps.get(index);
    if (step === undefined) continue;
    step.depth = depthOf(sources, callers);
    for (const [other, initializer] of left) {
      const { file, from, to } = initializer;
      if (file !== step.file || from > step.from || to < step.to) continue;
      left.delete(other);
      ordered.push({ ...initializer, depth: step.depth });
    }
    ordered.push(step);
  }
  return [...ordered, ...left.values()];
}

/** Where two modules have a function of one name, the bundler has put a number behind that of one. */
function nameOf(functionName, line) {
  if (functionName === "<instance_members_initializer>") return "(fields)";
  const name = functionName || "(callback)";
  return line.includes(name) ? name : name.replace(/(?<=[a-z])\d+$/, "");
}

/** Of the calls that have led to a function those of the library, without itself. */
function depthOf(sources, callers) {
  return callers.filter(([line, column]) => sources.at(line - 1, column - 1) !== undefined).length - 1;
}

/** The lines of a function that have run, without those of functions in it, which are steps of their own. */
function linesOf(sources, ranges, functions) {
  const [{ startOffset, endOffset }] = ranges;
  const inner = functions
    .map((each) => each.ranges[0])
    .filter((range) => range.startOffset >= startOffset && range.endOffset <= endOffset)
    .filter((range) => range.endOffset - range.startOffset < endOffset - startOffset);
  const skipped = [...inner, ...ranges.filter(({ count }) => count === 0)];
  const lines = new Set();
  for (const { index } of sources.text.slice(startOffset, endOffset).matchAll(/[\w$#]+|[^\s\w]/g)) {
    const offset = startOffset + index;
    if (skipped.some((range) => range.startOffset <= offset && offset < range.endOffset)) continue;
    const place = sources.atOffset(offset);
    if (place && sources.hasCode(place)) lines.add(place.line);
  }
  return [...lines].sort((a, b) => a - b);
}

/** How many files, functions and lines. */
export function totalsOf(steps) {
  return {
    files: new Set(steps.map(({ file }) => file)).size,
    functions: steps.length,
    lines: new Set(steps.flatMap(({ file, lines }) => lines.map((line) => `${file}:${line}`))).size,
  };
}
