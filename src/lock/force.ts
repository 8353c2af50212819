/** Ends a lock whoever holds it: an END by somebody else, which tells the holders of this client at once. */
import { writerOf } from "../base/names.js";
import { quietly } from "../base/work.js";
import type { Kind } from "../kinds/kind.js";

/** Resolves with whether it was held. @throws as a command */
export async function force(kind: Kind): Promise<boolean> {
  const { env, lockKey, lockName } = kind;
  const { runner } = env;
  // A command of a holder may report the loss before the answer to the force is here, and must know the cause.
  const holders = env.live.all().filter((grant) => grant.lockKey === lockKey);
  for (const grant of holders) grant.forcedBy++;
  // Who takes what it has forced in this tick must not be overtaken by waiters that the force wakes.
  runner.sender.gather();
  try {
    const request = () => kind.force(env.wireId());
    const ended = await runner.call(lockName, request, (reply) => Array.from(reply as unknown[], String));
    const wireIds = new Set(ended.map((field) => writerOf(field) ?? field));
    for (const grant of env.live.all()) {
      if (grant.lockKey === lockKey && wireIds.has(grant.wireId)) grant.lose("forced");
    }
    // A holder that was giving it back meanwhile learns it by the answer to that.
    const ending = holders.filter(({ state, wireId }) => state === "ending" && wireIds.has(wireId));
    await Promise.all(ending.map((grant) => quietly(grant.ended ?? Promise.resolve())));
    return ended.length > 0;
  } finally {
    // A command that was sent before may be answered a moment later.
    void quietly(env.settled()).then(() => {
      for (const grant of holders) grant.forcedBy--;
    });
  }
}
