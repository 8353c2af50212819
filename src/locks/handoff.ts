/** Who has a lock next when it is given back. */
import { type Acquisition, OTHERS_FIRST, type Successor } from "../engine/acquisition.js";
import type { Handoff as Decision } from "../engine/handoff-policy.js";
import type { Backend } from "./backend.js";
import type { Env } from "./env.js";

/** Asked who is to have a lock by the command that gives it back, where the lock's own queue is not asked. */
export type ChooseSuccessor = () => Successor | undefined;

/** The local successor, or none. */
export interface Handoff {
  readonly successor: Successor | undefined;
  /** Of the calls that wait for it here; absent where none of them is told. */
  readonly queueName?: string;
}

/** For holds that stay, and locks that are not handed over. */
export const NO_HANDOFF: Handoff = { successor: undefined };

/** Chooses the successor of a final release, just before it is sent. */
export function handoffOf(env: Env, backend: Backend, choose?: ChooseSuccessor): Handoff {
  if (!backend.traits.handoff) return NO_HANDOFF;
  const { queueName } = backend;
  if (choose) return { successor: choose(), queueName };
  // A grant that replicas must acknowledge travels with its WAIT.
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

/** Lets a call take part in the command that gives a lock back. `key`: how the call knows that lock. */
export function successorBy(
  call: Acquisition<unknown>,
  key: string,
  { env, backend, decision }: Giving,
): Successor | undefined {
  if (decision === "passLocal") return call.succeed(key, undefined);
  const own = decision === "offer" ? env.router.audience(backend.channel) : undefined;
  if (own !== undefined) return call.succeed(key, own);
  // All that is left to say is that it waits. A group's round would be lost by that, and begin anew later than by itself.
  return call.traits.advertised ? call.succeed(key, OTHERS_FIRST) : undefined;
}

/** The command that gave the lock back was answered, or has failed. */
export function concludeHandoff({ engine }: Env, { successor, queueName }: Handoff): void {
  successor?.silent();
  if (queueName === undefined) return;
  if (successor?.late) engine.queue(queueName)?.hint();
  else if (!successor?.settled) engine.queue(queueName)?.released();
}
