/** Whether two clients have one lock: one key is two locks on two servers, or in two databases. */
import { lockState } from "../scripts/generated.js";
import type { Env } from "./env.js";
import type { Grant } from "./owner-lock.js";

/** Whether a client's server has this hold of another client. */
export function isVisibleTo({ runner }: Env, { lockName, backend, field }: Grant): Promise<boolean> {
  const call = { lockName, script: lockState, keys: { lock: backend.key }, args: { owner: field } };
  return runner.call(call, (reply) => Number((reply as unknown[])[1]) > 0);
}
