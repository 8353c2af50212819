/** Mistakes in semaphores and latches, one at a time. */
import {
  counterTrySet,
  latchCountDown,
  permitsAcquire,
  permitsRelease,
  permitsRenew,
  permitsSet,
  permitsState,
  permitsUpdate,
  semaphoreAcquire,
  semaphoreDrain,
  semaphoreRelease,
  semaphoreUndo,
} from "../../../src/scripts/generated.js";
import type { AnyScript } from "../../../src/scripts/script.js";
import { KeptPermit } from "../../../src/synchronizers/kept-permit.js";
import type { Mistake } from "../planted.js";
import { inClass, inScript } from "../planting.js";

const PRUNED = "give_back(permits, ended, publish, channel)";

function inScripts(scripts: readonly AnyScript[], right: string, wrong: string): () => void {
  const ends = scripts.map((script) => inScript(script, right, wrong));
  return () => {
    for (const end of ends) end();
  };
}

export const mistakes: readonly Mistake[] = [
  {
    title: "permits are taken again when the call is sent again",
    kind: "semaphore",
    plant: () => inScript(semaphoreAcquire, "redis.call('SET', marker, count, 'PX', markerTtl)", ""),
  },
  {
    title: "permits are given back again when the call is sent again",
    kind: "semaphore",
    plant: () => inScript(semaphoreRelease, "redis.call('SET', marker, '1', 'PX', markerTtl)", ""),
  },
  {
    title: "a call that was given up keeps what it took",
    kind: "semaphore",
    plant: () => inScript(semaphoreUndo, "give_back(permits, taken, publish, channel)", ""),
  },
  {
    title: "free permits are announced to nobody",
    kind: "semaphore",
    plant: () =>
      inScript(
        semaphoreRelease,
        "redis.pcall(publish, channel, message ~= '' and message or string.format('%.0f', free))",
        "",
      ),
  },
  {
    title: "several free permits wake one",
    kind: "semaphore",
    plant: () => inScript(semaphoreAcquire, "return {1, free - count}", "return {1, 0}"),
  },
  {
    title: "one free permit is as good as many",
    kind: "semaphore",
    plant: () => inScript(semaphoreAcquire, "free < tonumber(count)", "free < 1"),
  },
  {
    title: "what was drained is forgotten when the call is sent again",
    kind: "semaphore",
    plant: () => inScript(semaphoreDrain, "redis.call('SET', marker, free, 'PX', markerTtl)", ""),
  },
  {
    title: "many permits that lapse count as one",
    kind: "permits",
    plant: () => {
      const scripts = [permitsAcquire, permitsRelease, permitsState, permitsSet, permitsUpdate];
      return inScripts(scripts, PRUNED, PRUNED.replace("ended", "1"));
    },
  },
  {
    title: "a permit is taken again when the call is sent again",
    kind: "permits",
    plant: () => inScript(permitsAcquire, "if redis.call('ZSCORE', leases, member) then", "if false then"),
  },
  {
    title: "a permit that has lapsed is given back once more",
    kind: "permits",
    plant: () =>
      inScript(permitsRelease, "if not out then", "if not out then give_back(permits, 1, publish, channel)"),
  },
  {
    title: "a release that is sent again finds no permit",
    kind: "permits",
    plant: () =>
      inScript(permitsRelease, "write_marker(tombstone, out and call or 'over', tombstoneTtl)", ""),
  },
  {
    title: "a renewal that renews nothing",
    kind: "permits",
    plant: () => inScript(permitsRenew, "redis.call('ZADD', key, 'XX', 'GT', now + lease, member)", ""),
  },
  {
    title: "the watchdog sleeps",
    kind: "permits",
    plant: () => inClass(KeptPermit.prototype, "watch", () => {}),
  },
  {
    title: "permits that are out are not counted",
    kind: "permits",
    plant: () => inScript(permitsSet, " - redis.call('ZCARD', leases)", ""),
  },
  {
    title: "one that comes back is announced to nobody",
    kind: "permits",
    plant: () =>
      inScript(
        permitsRelease,
        "redis.pcall(publish, channel, message ~= '' and message or string.format('%.0f', free))",
        "",
      ),
  },
  {
    title: "the latch opens one too early",
    kind: "latch",
    plant: () => inScript(latchCountDown, "if left > 1 then", "if left > 2 then"),
  },
  {
    title: "a count is counted again when it is sent again",
    kind: "latch",
    plant: () => inScript(latchCountDown, "redis.call('SET', marker, '1', 'PX', markerTtl)", ""),
  },
  {
    title: "the opening is announced to nobody",
    kind: "latch",
    plant: () => inScript(latchCountDown, "redis.pcall(publish, channel, '0')", ""),
  },
  {
    title: "whoever sets the count does not hear of it when the call is sent again",
    kind: "latch",
    plant: () => inScript(counterTrySet, "redis.call('SET', marker, '1', 'PX', markerTtl)", ""),
  },
];
