/** `NODE_DEBUG=holdfast` prints what the library does. Lines carry lock names, never script arguments or addresses. */
import { debuglog } from "node:util";

const log = debuglog("holdfast");

/** Node's own costs as much as a script call's arguments, also when it prints nothing. */
export const trace: (message: string, ...values: unknown[]) => void = log.enabled ? log : () => {};
