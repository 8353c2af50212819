/** Who called, in the stack of an error that began somewhere else: in a timer, or in the answer of a server. */
import { isLockError } from "./errors.js";

/**
 * For the `catch` of a promise that a user awaits: throws the error again, with the frames of the awaiting functions at
 * the end of its stack. They cost nothing until something fails.
 */
export function tellCaller(error: unknown): never {
  if (isLockError(error)) {
    const here: { stack?: unknown } = {};
    Error.captureStackTrace(here, tellCaller);
    const frames = /\n\s+at .*/s.exec(String(here.stack))?.[0];
    // One error may be what several calls reject with, or what one call rejects with several times.
    if (frames && !error.stack?.includes(frames)) error.stack = `${error.stack}${frames}`;
  }
  throw error;
}
