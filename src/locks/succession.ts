/** Who has a lock next when it is given back. */
import { type Claim, queueNameOf } from "./claim.js";
import type { Env } from "./env.js";
import type { NamesHeir } from "./grant.js";
import type { Heir } from "./heir.js";
import type { Primitive } from "./primitive.js";

/** An heir of this process; else whoever comes first, but others before this process if it `yields`. */
export interface Succession {
  readonly heir: Heir | undefined;
  readonly yields: boolean;
  /** Of those who wait for it here; absent where none of them is told. */
  readonly queueName?: string;
}

/** For holds that stay, and locks that are not handed over. */
export const NO_HEIR: Succession = { heir: undefined, yields: false };

/** To be asked just before the lock is given back. `named`: who has it next, where its own line is not asked. */
export function successionOf(env: Env, primitive: Primitive, named?: NamesHeir): Succession {
  if (!primitive.traits.handoff) return NO_HEIR;
  const queueName = queueNameOf(primitive);
  if (named) return { heir: named(), yields: false, queueName };
  // A grant that replicas must acknowledge travels with its WAIT.
  if (env.replicas) return { heir: undefined, yields: false, queueName };
  let heir: Heir | undefined;
  let yields = false;
  env.engine.queue(queueName)?.handOver((call, offered) => {
    const own = offered ? env.router.audience(primitive.channel) : undefined;
    yields = offered && own === undefined;
    // Those who stand in the line of a lock are claims.
    if (!yields) heir = (call as Claim).inherit(own);
    return heir !== undefined;
  });
  return { heir, yields, queueName };
}

/** The command that gave it back was answered, or has failed. */
export function concludeSuccession({ engine }: Env, { heir, yields, queueName }: Succession): void {
  heir?.silent();
  if (queueName === undefined) return;
  if (heir?.late) engine.queue(queueName)?.hint();
  else if (!heir?.settled) engine.queue(queueName)?.released(yields);
}
