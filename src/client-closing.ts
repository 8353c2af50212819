/** The end of a client: in which order its parts go, and for how long each of them is waited for. */
import { clearTimeout, setImmediate, setTimeout } from "./base/platform.js";
import type { Env } from "./locks/env.js";

/**
 * Rejects waiters, gives what is held `grace` milliseconds to end by itself, ends the rest, and waits for `settling`
 * milliseconds until what is under way has been answered.
 */
export async function closeParts(env: Env, grace: number, settling: number): Promise<void> {
  env.closed = true;
  await env.engine.close();
  if (grace > 0) await atMost(env.idle(), grace);
  for (const live of [...env.live.all(), ...env.permits.all()]) live.loseByClose();
  await atMost(env.settled(), settling);
  env.ended = true;
  env.watchdog.close();
  env.router.close();
  env.link.close();
  env.replicas?.close();
  // Once what the close itself caused has been sent.
  await new Promise((resolve) => setImmediate(resolve));
}

/** Resolves with the work, or after `ms`. */
function atMost(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    // This timer has to fire even when nothing else keeps the process alive.
    const timer =
      ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(resolve, Math.min(ms, 2 ** 31 - 1));
    void work.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
