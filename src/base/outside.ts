/** The async context of the scopes and runs around a call, and the way out of it. */
import { AsyncLocalStorage } from "node:async_hooks";

/** On globalThis, so that an ESM and a CJS copy of the library in one process see the same. */
const STORE = Symbol.for("holdfast.context/4");
const globals = globalThis as { [STORE]?: AsyncLocalStorage<unknown> };
globals[STORE] ??= new AsyncLocalStorage<unknown>();

/** The innermost scope or run; undefined outside of all. */
export const around: AsyncLocalStorage<unknown> = globals[STORE];

/**
 * Runs fn outside every scope: for listeners, and for timers and connections that outlive the call that made them. A socket
 * passes the context in which it was made to its listeners.
 */
export function outside<T>(fn: () => T): T {
  return around.getStore() === undefined ? fn() : around.run(undefined, fn);
}
