/** Warnings of the process (`process.emitWarning`), for mistakes that no error can tell: each once per place in the code. */

/** Where a user's code called. Costs some microseconds to take, and its text is made when it is asked for. */
export class CallSite {
  declare readonly stack?: unknown;

  /** `called`: the function of this library that was called. */
  constructor(called: (...args: never[]) => unknown) {
    const limit = Error.stackTraceLimit;
    // One frame is all that is told, and each costs an idle hold some fifty bytes. Where Error is frozen, it gets them all.
    Reflect.set(Error, "stackTraceLimit", 1);
    Error.captureStackTrace(this, called);
    Reflect.set(Error, "stackTraceLimit", limit);
  }

  /** `function (file:line:column)`; empty where it is not known. */
  get text(): string {
    return /\n\s+at (?:async )?(.*)/.exec(String(this.stack))?.[1] ?? "";
  }
}

const warned = new Set<string>();

/** `code`: what a listener of `warning` tells it by. */
export function warnOnce(callSite: CallSite | undefined, code: string, text: string): void {
  const where = callSite?.text ?? "";
  const key = `${code} ${where}`;
  if (warned.has(key)) return;
  warned.add(key);
  process.emitWarning(where ? `${text} At ${where}` : text, { type: "HoldfastWarning", code });
}
