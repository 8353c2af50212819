// In the measured process: waiters that all want one lock.
import { sleep } from "../lib/stats.mjs";
import { TTL } from "./serial.mjs";

/** How long those who were not served in the window are waited for, if the scenario does not say. */
const GRACE_MS = 1_500;
/** What a writer adds to the counter of those inside; a reader adds 1. */
const WRITER = 1_000;
/** Of so many sections of a read-mostly run one writes. */
const WRITES_EVERY = 20;
const FIELDS = 5;

/**
 * Runs waiters from `start` for `windowMs`, in ms after `base`, a process.hrtime.bigint() that all processes share.
 * Each takes, holds for `holdMs` and gives back. It does so again at once (a loop), or when all of this process have
 * been served (`burst`). Every section is recorded as [waiter, asked, got, left, wrote]. It is also marked in a counter
 * in Redis, whose answer is read later, so that nothing waits for it: two inside are a violation. That is sound: the
 * leave is written before the release, so Redis sees it before anyone can learn of the lock. A waiter not served
 * `graceMs` after the window counts as waiting until then, and the process is given up.
 */
export async function contend(w, options) {
  const { base, start, windowMs, waiters, holdMs, firstId, readMostly = false } = options;
  const { burst = false, ttl = TTL, counter = true, key = "bench:lock" } = options;
  const { rounds = Number.POSITIVE_INFINITY, graceMs = GRACE_MS } = options;
  const end = start + windowMs;
  const record = [];
  const checks = [];
  const pending = new Map();
  let violations = 0;
  let atEnd = null;

  await sleep(Math.max(0, start - w.now(base)));
  const sent = w.sent();
  const cpu = w.cpuMs();
  const soFar = () => ({ sent: w.sent() - sent, cpu: w.cpuMs() - cpu });
  const atEndOfWindow = () => {
    atEnd = soFar();
  };
  const timer = burst ? undefined : setTimeout(atEndOfWindow, end - w.now(base));

  const enter = (weight, wrote) =>
    checks.push(
      w.check.hincrby("bench:inside", key, weight).then((inside) => {
        if (wrote ? inside !== WRITER : inside >= WRITER) violations++;
      }),
    );
  const section = async (id, turn, asked) => {
    const wrote = !readMostly || (id * 7 + turn) % WRITES_EVERY === 0;
    const weight = wrote ? WRITER : 1;
    pending.set(id, asked);
    const hold = await w.inst.acquire(key, ttl, wrote ? undefined : "read");
    pending.delete(id);
    const got = w.now(base);
    if (counter) enter(weight, wrote);
    // After the window the loops only empty the queue.
    if (holdMs > 0 && (burst || got < end)) await sleep(holdMs);
    if (counter) w.check.hincrby("bench:inside", key, -weight).catch(() => {});
    const left = w.now(base);
    await w.inst.release(hold);
    record.push(id, asked, got, left, wrote ? 1 : 0);
  };
  const loop = async (id) => {
    let turn = 0;
    for (let asked = w.now(base); asked < end; asked = w.now(base)) await section(id, turn++, asked);
  };
  const each = (act) => Promise.all(Array.from({ length: waiters }, (_, i) => act(firstId + i)));

  let done = 0;
  let doneAt = start;
  const bursts = async () => {
    do {
      const asked = w.now(base);
      await each((id) => section(id, done, asked));
      done++;
      doneAt = w.now(base);
    } while (doneAt < end && done < rounds);
  };
  const all = (burst ? bursts() : each(loop)).then(() => true);
  const complete = await Promise.race([all, sleep(end + graceMs - w.now(base)).then(() => false)]);
  const took = w.now(base) - start;
  atEnd ??= soFar();
  clearTimeout(timer);
  if (complete) await Promise.all(checks);
  return {
    record: Float64Array.from(record),
    fields: FIELDS,
    left: complete ? [] : [...pending.values()].map((asked) => start + took - asked),
    violations,
    burstMs: done > 0 ? (doneAt - start) / done : Number.NaN,
    took,
    complete,
    ...atEnd,
  };
}

export const worker = { prepare: (w, { key }) => w.inst.prepare?.(key), contend };
