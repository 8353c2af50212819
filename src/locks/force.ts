/** Gives a lock back by force, and tells the holders in this process at once why their hold is gone. */

import { quietly } from "../base/work.js";
import { LockAcquisition } from "./acquire.js";
import type { Backend } from "./backend.js";
import { askWhetherForced, loseByForce, suspect, unsuspect, wireIdOn } from "./loss.js";
import type { LockTable } from "./owner-lock.js";

const CLIENTS = Symbol.for("holdfast.clients/1");
const globals = globalThis as { [CLIENTS]?: Set<ForceListener> };
globals[CLIENTS] ??= new Set();
const listeners = globals[CLIENTS];

/**
 * Told that this process gave a lock back by force. Resolves when its client has asked its own server whether its holds
 * are gone: that may be another server, with a lock of the same name, and a hold may have been granted after the force.
 */
export type ForceListener = (backend: Backend) => Promise<void>;

/** Registers a client's listener until the returned function is called. */
export function onForce(listener: ForceListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * This process gave a lock back by force. The client asks its server about each hold of that lock, and about each grant
 * on its way.
 */
export async function hearOfForce({ env, live }: LockTable, forced: Backend): Promise<void> {
  const arriving = env.engine.trying.map(async (call) => {
    if (!(call instanceof LockAcquisition) || call.backend.key !== forced.key) return;
    await quietly(Promise.resolve(call.lastTry));
    await askWhetherForced(call.own, forced);
  });
  await Promise.all([...live.all().map((own) => askWhetherForced(own, forced)), ...arriving]);
}

/** What came of a lock that was given back by force. */
export interface Forced {
  readonly wasHeld: boolean;
  /** Resolves once the holders in this process know, or those whose server does not answer have had the time of a command. */
  readonly told: Promise<void>;
}

/** Gives a lock back, whoever holds it. */
export async function force(table: LockTable, backend: Backend): Promise<Forced> {
  const { env, live } = table;
  const { runner } = env;
  env.assertOpen(backend.lockName);
  if (!runner.prepared) await runner.prepare(backend.lockName, runner.commandTimeout);
  // A hold granted after this moment may be newer than the force: {@link hearOfForce} asks the server about such holds.
  const holders = live.all().flatMap((own) => {
    const wireId = wireIdOn(own, backend);
    return wireId === undefined ? [] : [{ own, wireId }];
  });
  // A command of a holder may report the loss before the answer to the force is here, and must know the cause.
  for (const { own } of holders) suspect(own, backend.side);
  // A try that is sent right behind the force, in this tick, must not be overtaken by waiters that the force wakes.
  runner.sender.gather();
  try {
    const wasHeld = await backend.force(env.callId(env.wireId()));
    if (!wasHeld) return { wasHeld, told: Promise.resolve() };
    for (const { own, wireId } of holders) loseByForce(own, backend, wireId);
  } finally {
    for (const { own } of holders) unsuspect(own, backend.side);
  }
  const told = Promise.all([...listeners].map((listener) => listener(backend)));
  return { wasHeld: true, told: quietly(runner.withTimeout(backend.lockName, told)) };
}
