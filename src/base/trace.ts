/** `NODE_DEBUG=holdfast` prints what the library does. Lines carry lock names, never script arguments or addresses. */
import { debuglog } from "node:util";

const log = debuglog("holdfast");

/**
 * Undefined when nothing is printed: then `trace?.(…)` does not even make its arguments.
 */
export const trace: ((message: string, ...values: unknown[]) => void) | undefined = log.enabled
  ? log
  : undefined;
