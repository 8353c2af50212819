/** The place in the user's code that called this library, read from a stack trace. */

export class CallSite {
  declare readonly stack?: unknown;

  /**
   * Captures the stack, which costs some microseconds; the text is made only when it is asked for. `called`: the
   * function of this library that the user called. `frames`: how many frames of its callers are kept; each costs an
   * idle hold some fifty bytes.
   */
  constructor(called: (...args: never[]) => unknown, frames = 1) {
    const limit = Error.stackTraceLimit;
    // A frozen Error keeps its own limit, so more frames are captured then.
    Reflect.set(Error, "stackTraceLimit", frames);
    Error.captureStackTrace(this, called);
    Reflect.set(Error, "stackTraceLimit", limit);
  }

  /** `function (file:line:column)` of the nearest frame outside this library; empty if that is not known. */
  get text(): string {
    const frames = framesOf(this.stack);
    // In a bundle the library and its user are one file, so no frame counts as outside: the first frame is the answer.
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
  // In the sources this file is in the folder `base`, in the build it is not.
  return /\((.*[\\/])[^\\/]*$/.exec(frame)?.[1]?.replace(/base[\\/]$/, "") ?? "";
}

/**
 * True for a frame of the user's code: not of this library or its entries, not of Node, and not native (without a
 * file).
 */
function isOutside(frame: string): boolean {
  home ??= homeOf();
  return /:\d+:\d+\)?$/.test(frame) && !frame.includes(home) && !frame.includes("node:");
}
