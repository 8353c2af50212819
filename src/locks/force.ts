/** Giving a lock back by force, and telling this process: its holders are told at once why theirs is gone. */
import { LockAcquisition } from "./acquire.js";
import type { Backend } from "./backend.js";
import { askWhetherForced, loseByForce, suspect, unsuspect, wireIdOn } from "./loss.js";
import type { LockTable } from "./owner-lock.js";
import { quietly } from "./work.js";

const CLIENTS = Symbol.for("holdfast.clients/1");
const globals = globalThis as { [CLIENTS]?: Set<ForceListener> };
globals[CLIENTS] ??= new Set();
const listeners = globals[CLIENTS];

/**
 * Told that this process gave a lock back by force. Resolves when it has asked its own server whether its holds are gone:
 * that may be another one, with a lock of the same name, and a hold may have been granted after the force.
 */
export type ForceListener = (backend: Backend) => Promise<void>;

/** Registers a client's listener until the returned function is called. */
export function onForce(listener: ForceListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * This process gave a lock back by force: those who have it by this client find out, and those whose grant is on its way, but
 * for members of a RedLock, which find out by their next renewal.
 */
export async function hearOfForce({ env, live }: LockTable, forced: Backend): Promise<void> {
  const arriving = env.engine.trying.map(async (call) => {
    if (!(call instanceof LockAcquisition) || call.backend.key !== forced.key) return;
    await quietly(Promise.resolve(call.lastTry));
    await askWhetherForced(call.own, forced);
  });
  await Promise.all([...live.all().map((own) => askWhetherForced(own, forced)), ...arriving]);
}

/** Gives a lock back whoever holds it; resolves with whether anybody did, when the holders in this process know. */
export async function forceUnlock(table: LockTable, backend: Backend): Promise<boolean> {
  const { env, live } = table;
  // Whoever is granted after this moment may have got the lock after the force: of those the server is asked.
  const holders = live.all().flatMap((own) => {
    const wireId = wireIdOn(own, backend);
    return wireId === undefined ? [] : [{ own, wireId }];
  });
  // What they send meanwhile may be told of the loss before the answer to the force is here.
  for (const { own } of holders) suspect(own, backend.side);
  // Who takes it right behind is not overtaken by those whom this wakes.
  env.runner.sender.gather();
  try {
    const forced = await backend.force(env.callId(env.wireId()));
    if (!forced) return false;
    for (const { own, wireId } of holders) loseByForce(own, backend, wireId);
  } finally {
    for (const { own } of holders) unsuspect(own, backend.side);
  }
  const told = Promise.all([...listeners].map((listener) => listener(backend)));
  // For a holder whose server does not answer it is over all the same.
  await quietly(env.runner.withTimeout(backend.lockName, told));
  return true;
}
