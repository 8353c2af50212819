/** `NODE_DEBUG=holdfast` prints what the library does. Lines carry lock names, never script arguments or addresses. */
import { debuglog } from "node:util";

const log = debuglog("holdfast");

/**
 * Node's own function costs as much as a script call's arguments even when it prints nothing, so it is left out then.
 */
export const trace: (message: string, ...values: unknown[]) => void = log.enabled ? log : () => {};
