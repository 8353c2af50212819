/** Where code outside this library called it, as a stack tells. */

export class CallSite {
  declare readonly stack?: unknown;

  /**
   * Costs some microseconds, and its text is made when it is asked for. `called`: the function of this library that was called.
   * `frames`: how many are kept of those behind it; each costs an idle hold some fifty bytes.
   */
  constructor(called: (...args: never[]) => unknown, frames = 1) {
    const limit = Error.stackTraceLimit;
    // Where Error is frozen, it gets them all.
    Reflect.set(Error, "stackTraceLimit", frames);
    Error.captureStackTrace(this, called);
    Reflect.set(Error, "stackTraceLimit", limit);
  }

  /** `function (file:line:column)` of the nearest frame outside this library; empty where it is not known. */
  get text(): string {
    const frames = framesOf(this.stack);
    // In a bundle all files are one, and nothing is known to be outside.
    return frames.find(isOutside) ?? frames[0] ?? "";
  }
}

function framesOf(stack: unknown): string[] {
  return Array.from(String(stack).matchAll(/\n\s+at (?:async )?(.*)/g), ([, frame = ""]) => frame);
}

/** The folder of this library's code, as stacks name it. */
let home: string | undefined;

function homeOf(): string {
  const here: { stack?: unknown } = {};
  Error.captureStackTrace(here);
  const [frame = ""] = framesOf(here.stack);
  // The sources have a folder for this file.
  return /\((.*[\\/])[^\\/]*$/.exec(frame)?.[1]?.replace(/base[\\/]$/, "") ?? "";
}

/** An entry of the package may stand between this library and its user; Node has called what no file has. */
function isOutside(frame: string): boolean {
  home ??= homeOf();
  return /:\d+:\d+\)?$/.test(frame) && !frame.includes(home) && !frame.includes("node:");
}
