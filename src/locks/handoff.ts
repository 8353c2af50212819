/** Chooses the successor of a release, and tells the wait queue how the release ended. */
import { type Acquisition, OTHERS_FIRST, type Successor } from "../engine/acquisition.js";
import type { Handoff as Decision } from "../engine/handoff-policy.js";
import type { Backend } from "./backend.js";
import type { Env } from "./env.js";

/** Chooses the successor of a release, in place of the lock's own wait queue. */
export type ChooseSuccessor = () => Successor | undefined;

/** The local successor, or none. */
export interface Handoff {
  readonly successor: Successor | undefined;
  /** The wait queue of the lock in this client; absent where it is not told of the release. */
  readonly queueName?: string;
}

/** For releases that leave holds, and for kinds of lock without hand-over. */
export const NO_HANDOFF: Handoff = { successor: undefined };

/** Chooses the successor of a final release, just before it is sent. */
export function handoffOf(env: Env, backend: Backend, choose?: ChooseSuccessor): Handoff {
  if (!backend.traits.handoff) return NO_HANDOFF;
  const { queueName } = backend;
  if (choose) return { successor: choose(), queueName };
  // A grant that replicas must acknowledge is sent with a WAIT, so a release cannot grant the lock.
  if (env.replicas) return { successor: undefined, queueName };
  let successor: Successor | undefined;
  env.engine.queue(queueName)?.handOver((call, decision) => {
    successor = successorBy(call, env.lockKey(backend.key), { env, backend, decision });
    return successor !== undefined;
  });
  return { successor, queueName };
}

interface Giving {
  readonly env: Env;
  readonly backend: Backend;
  readonly decision: Decision;
}

/** Makes a waiting call the successor of a release, if it can be. `key`: the name by which the call knows the lock. */
export function successorBy(
  call: Acquisition<unknown>,
  key: string,
  { env, backend, decision }: Giving,
): Successor | undefined {
  if (decision === "passLocal") return call.succeed(key, undefined);
  const own = decision === "offer" ? env.router.audience(backend.channel) : undefined;
  if (own !== undefined) return call.succeed(key, own);
  // Others go first, so the release can only tell the server that the call waits: an advertised call needs that. The
  // round of a group would be lost by it, and begin anew later than by itself.
  return call.traits.advertised ? call.succeed(key, OTHERS_FIRST) : undefined;
}

/** The command that gave the lock back was answered, or has failed. `lost`: there was nothing to give back any more. */
export function concludeHandoff({ engine }: Env, { successor, queueName }: Handoff, lost: boolean): void {
  successor?.silent();
  if (queueName === undefined) return;
  const queue = engine.queue(queueName);
  queue?.released(lost, successor?.settled);
  if (successor?.late) queue?.hint();
}
