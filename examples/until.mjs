// Waiting for what can be seen, instead of sleeping and hoping.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

/** Looks again and again until it is so; resolves with what was seen then. The example fails if that takes too long. */
export async function until(what, look, timeout = 15_000) {
  const deadline = performance.now() + timeout;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    assert.ok(performance.now() < deadline, `not within ${timeout} ms: ${what}`);
    await sleep(5);
  }
}
