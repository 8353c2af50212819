/** Giving a lock back by force, and telling this process: its holders are told at once why theirs is gone. */
import type { Env } from "./env.js";
import type { Primitive } from "./primitive.js";
import { quietly } from "./work.js";

const CLIENTS = Symbol.for("holdfast.clients/1");
const globals = globalThis as { [CLIENTS]?: Set<ForceListener> };
globals[CLIENTS] ??= new Set();
const listeners = globals[CLIENTS];

/**
 * Told that this process gave a lock back by force; `by` is the Env of the client that did. Resolves when it has asked
 * its own server whether its holds are gone: that may be another one, with a lock of the same name.
 */
export type ForceListener = (primitive: Primitive, by: object) => Promise<void>;

/** Registers a client's listener until the returned function is called. */
export function onForce(listener: ForceListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Gives a lock back whoever holds it; resolves with whether anybody did, when the holders in this process know. */
export async function forceUnlock(env: Env, primitive: Primitive): Promise<boolean> {
  // Whoever is granted after this moment may have got the lock after the force.
  const holders = env.live.all().flatMap((holdings) => {
    const wireId = holdings.wireIdOn(primitive);
    return wireId === undefined ? [] : [{ holdings, wireId }];
  });
  const forced = await primitive.force(env.callId(env.wireId()));
  if (!forced) return false;
  for (const { holdings, wireId } of holders) holdings.loseByForce(primitive, wireId);
  const told = Promise.all([...listeners].map((listener) => listener(primitive, env)));
  // For a holder whose server does not answer it is over all the same.
  await quietly(env.link.limited(primitive.lockName, told));
  return true;
}
