// What V8 says has run in this process, and in which order. To be loaded first: of functions that have been compiled
// by then only their calls are counted, not their lines.
import { Session } from "node:inspector";

const session = new Session();
session.connect();

/** A session of its own thread is answered at once. */
function post(method, params) {
  let answer;
  session.post(method, params, (error, result) => {
    answer = { error, result };
  });
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
}

post("Profiler.enable");
post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });

/** The functions of this file, each with its ranges and how often they have run since this was last asked. */
export function taken(file) {
  const { result } = post("Profiler.takePreciseCoverage");
  return result.find(({ url }) => url === file || url === `file://${file}`)?.functions ?? [];
}

/**
 * Notes each of these functions, which have run before, in order of first entry from now on, as `{ index, callers }`. A
 * caller is the `[line, column]`, from 1, of its call. Breakpoints whose conditions are never true do it.
 */
export function entries(file, functions) {
  const noted = [];
  const seen = new Set();
  globalThis.__entered = (index) => {
    if (seen.has(index)) return false;
    seen.add(index);
    noted.push({ index, callers: callers(file) });
    return false;
  };
  let scriptId;
  session.on("Debugger.scriptParsed", ({ params }) => {
    if (params.url === file || params.url === `file://${file}`) scriptId = params.scriptId;
  });
  post("Debugger.enable");
  const { scriptSource } = post("Debugger.getScriptSource", { scriptId });
  const starts = [0, ...Array.from(scriptSource.matchAll(/\n/g), ({ index }) => index + 1)];
  const at = (offset) => {
    const lineNumber = starts.findLastIndex((start) => start <= offset);
    return { scriptId, lineNumber, columnNumber: offset - starts[lineNumber] };
  };
  for (const [index, { ranges }] of functions.entries()) {
    const [{ startOffset, endOffset, count }] = ranges;
    if (count === 0) continue;
    const range = { start: at(startOffset), end: at(endOffset), restrictToFunction: true };
    // The first one may be that of a default that is not needed.
    for (const location of post("Debugger.getPossibleBreakpoints", range).locations)
      post("Debugger.setBreakpoint", { location, condition: `__entered(${index})` });
  }
  return noted;
}

function callers(file) {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.stackTraceLimit = Number.POSITIVE_INFINITY;
  Error.prepareStackTrace = (_error, sites) =>
    sites
      .filter((site) => site.getFileName() === file)
      .map((site) => [site.getLineNumber(), site.getColumnNumber()]);
  const { stack } = new Error("asked for its callers");
  Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  return stack;
}
