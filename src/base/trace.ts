/** `NODE_DEBUG=holdfast` prints what the library does. Lines carry lock names, never script arguments or addresses. */
import { debuglog } from "node:util";

export const trace: ReturnType<typeof debuglog> = debuglog("holdfast");
