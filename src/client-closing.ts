/** Closes a client: in which order its parts end, and for how long each of them is waited for. */
import type { Clock } from "./base/clock.js";
import type { LossReason } from "./base/errors.js";
import { clearTimeout, LONGEST_TIMER, setImmediate, setTimeout } from "./base/platform.js";
import type { ClientParts } from "./client-parts.js";

/** Ends all holds and permits of the client now, as lost, and gives them back. */
export function loseAll({ env, permits }: ClientParts, reason: LossReason): void {
  for (const grant of env.live.all()) grant.lose(reason);
  for (const permit of permits.live.all()) permit.lose(reason);
}

/**
 * Rejects waiters, and gives holds and permits `grace` milliseconds to end by themselves. Then ends the rest, and waits
 * `settling` milliseconds at most for the answers to the commands under way.
 */
export async function closeParts(parts: ClientParts, grace: number, settling: number): Promise<void> {
  const { env, permits, presence } = parts;
  env.closed = true;
  env.sites.close();
  if (grace > 0) await atMost(env.clock, Promise.all([env.live.idle(), permits.live.idle()]), grace);
  loseAll(parts, "closed");
  env.settle(presence.close());
  if (grace > 0) await atMost(env.clock, env.settled(), settling);
  else await settledUnlessAway(parts, settling);
  env.ended = true;
  env.watchdog.close();
  env.router.close();
  env.runner.close();
  // The commands that the close itself caused are sent before.
  await new Promise((resolve) => setImmediate(resolve));
  env.runner.alive.close();
}

/** Waits until the commands under way have been answered, but not for a Redis that is away. */
async function settledUnlessAway({ env }: ClientParts, settling: number): Promise<void> {
  const { runner } = env;
  let open = true;
  const settled = env.settled().then(() => {
    open = false;
  });
  const step = settling / 10;
  for (let waited = 0; waited < settling && runner.servers.connected; waited += step) {
    await atMost(env.clock, settled, step);
    // After a stall of this process Redis only seems to be away, so answers that have arrived are read first.
    await new Promise((resolve) => setImmediate(resolve));
    if (!open || runner.servers.away) return;
  }
}

/** Resolves when the work is done, or after `ms`. */
function atMost(clock: Clock, work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const stops: (() => void)[] = [];
    const done = () => {
      for (const stop of stops) stop();
      resolve();
    };
    if (ms !== Number.POSITIVE_INFINITY) {
      // A real timer next to that of the clock. It fires even if nothing else keeps the process alive, and if the clock
      // of a test stands still.
      const timer = setTimeout(done, Math.min(ms, LONGEST_TIMER));
      stops.push(() => clearTimeout(timer), clock.after(ms, done));
    }
    void work.then(done);
  });
}
