/** Giving a lock back by force, and telling this process: its holders are told at once why theirs is gone. */
import type { Backend } from "./backend.js";
import { loseByForce, wireIdOn } from "./loss.js";
import type { LockTable } from "./owner-lock.js";

const CLIENTS = Symbol.for("holdfast.clients/1");
const globals = globalThis as { [CLIENTS]?: Set<ForceListener> };
globals[CLIENTS] ??= new Set();
const listeners = globals[CLIENTS];

/** Told that this process gave a lock back by force; `by`: the table of the client that did. */
export type ForceListener = (backend: Backend, by: object) => void;

/** Registers a client's listener until the returned function is called. */
export function onForce(listener: ForceListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Gives a lock back whoever holds it; resolves with whether anybody did. */
export async function forceUnlock(table: LockTable, backend: Backend): Promise<boolean> {
  const { env, live } = table;
  // Whoever is granted after this moment may have got the lock after the force.
  const holders = live.all().flatMap((own) => {
    const wireId = wireIdOn(own, backend);
    return wireId === undefined ? [] : [{ own, wireId }];
  });
  const forced = await backend.force(env.callId(env.wireId()));
  if (!forced) return false;
  for (const { own, wireId } of holders) loseByForce(own, backend, wireId);
  for (const listener of listeners) listener(backend, table);
  return true;
}
