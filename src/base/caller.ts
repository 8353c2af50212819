/** Adds the caller to the stack of an error that was made elsewhere: in a timer, or when a server answered. */
import { isLockError } from "./errors.js";

/**
 * Throws the error again, with the frames of the awaiting functions at the end of its stack. It is for the `catch` of a
 * promise that a user awaits. The frames cost nothing until something fails.
 */
export function tellCaller(error: unknown): never {
  if (isLockError(error)) {
    const here: { stack?: unknown } = {};
    Error.captureStackTrace(here, tellCaller);
    const frames = /\n\s+at .*/s.exec(String(here.stack))?.[0];
    // Several calls may reject with the same error, and one call several times: the same frames are added only once.
    if (frames && !error.stack?.includes(frames)) error.stack = `${error.stack}${frames}`;
  }
  throw error;
}

/**
 * What the promise of a user is resolved with, so that it rejects with this error and {@link tellCaller} finds who awaits
 * it. Calls that succeed then need no further promise.
 */
export function failure(error: unknown): Promise<never> {
  // By the second rejection the user's promise follows this one.
  return Promise.reject(error).catch(rethrow).catch(tellCaller);
}

function rethrow(error: unknown): never {
  throw error;
}
