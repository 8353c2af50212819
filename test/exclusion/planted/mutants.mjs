/**
 * The real library with one mistake each, made by mutation.mjs. Redisson, or some other lock, has had these mistakes.
 *
 * @typedef {import("./mutation.mjs").Edit} Edit
 */

const CLOCK = "return time[1] * 1000 + math.floor(time[2] / 1000)";
/** The scripts that draw a token, and in how many places. */
const DRAWS = [
  { script: "fenced/acquire", times: 2 },
  { script: "fenced/pass", times: 1 },
];
const FAIR_SCRIPTS = ["fair/acquire", "fair/release", "fair/undo"];

/** @type {Record<string, (options: { skew?: number }) => Edit[]>} */
export const MUTANTS = {
  // The release deletes the lock without checking its owner.
  "frees-others": () => [
    { script: "fair/release", from: "redis.call('HDEL', lock, owner)", to: "redis.call('DEL', lock)" },
  ],

  // The same, for a lock that is not fair.
  "frees-anybody": () => [
    {
      script: "lock/release",
      from: "if redis.call('HDEL', lock, owner) == 1 then",
      to: "if redis.call('DEL', lock) == 1 then",
    },
  ],

  // The clocks of the processes decide which waiters are dead; one of these clocks is wrong by `skew` ms.
  "client-clock": ({ skew = 0 }) =>
    FAIR_SCRIPTS.map((script) => ({ script, from: CLOCK, to: `${CLOCK} + ${skew}` })),

  // The head of a queue is dropped only when its time is over, so a head without a time is never dropped.
  "scoreless-head": () => [
    ...FAIR_SCRIPTS.map((script) => ({
      script,
      from: "if deadline and deadline > now then",
      to: "if not deadline or deadline > now then",
    })),
    {
      script: "fair/acquire",
      from: "deadline_of(timeouts, alive, head) - now",
      to: "(deadline_of(timeouts, alive, head) or now + 1000) - now",
    },
  ],

  // A waiter that gives up leaves the queue and wakes no other waiter, even if it was its turn.
  "silent-abandon": () => [
    {
      script: "fair/undo",
      from: "wake_next(queue, timeouts, alive, channel, publish, now) end",
      to: "end",
    },
  ],

  // A call that finds the lock free takes it, even if there is a queue.
  barging: () => [
    { script: "fair/acquire", from: "if free and (not head or head == owner) then", to: "if free then" },
  ],

  // Only Redisson's time-outs say which waiters are alive: minutes for each waiter that died.
  "patient-queue": () =>
    FAIR_SCRIPTS.map((script) => ({
      script,
      from: "tonumber(redis.call('ZSCORE', alive, waiter) or timeout)",
      to: "tonumber(timeout)",
    })),

  // The counter of tokens expires with the lease.
  "expiring-counter": () =>
    DRAWS.flatMap(({ script, times }, i) => [
      { script, times, from: "if token < floor then", to: "if false then" },
      {
        script,
        times,
        from: "redis.call('INCR', counter)",
        // Each script has the lease as another argument.
        to: `redis.call('INCR', counter)\nredis.call('PEXPIRE', counter, ARGV[${i + 2}])`,
      },
    ]),

  // The counter starts from 1 if the server has lost it.
  "counter-from-one": () =>
    DRAWS.map((draws) => ({
      ...draws,
      from: "if token < floor then",
      to: "if false then",
    })),

  // The tokens come from a counter that Redisson does not know.
  "own-counter": () => [
    {
      from: 'prefixed("redisson_lock_token", name)',
      to: 'prefixed("holdfast_lock_token", name)',
    },
  ],

  // A reader checks whether the lock is held, but not in which mode.
  "reader-beside-writer": () => [
    { script: "read/acquire", from: "if mode ~= 'read' then", to: "if not mode then" },
  ],

  // Any reader that leaves is taken for the last one.
  "frees-other-readers": () => [
    { script: "read/release", from: "if longest > 0 then\nredis", to: "if false then\nredis" },
  ],

  // The nested read of a writer sets the TTL of the whole lock to that of the reads.
  "read-cuts-write": () => [
    {
      script: "read/release",
      from: "redis.call('PEXPIRE', lock, left)",
      to: "redis.call('PEXPIRE', lock, math.max(1, all_reads_left(lock)))",
    },
  ],

  // A writer that goes on as a reader does not announce that others may read as well.
  "silent-downgrade": () => [
    {
      script: "write/release",
      from: "redis.pcall(publish, channel, '1')",
      to: "if redis.call('EXISTS', lock) == 0 then redis.pcall(publish, channel, '1') end",
    },
  ],

  // The last write hold deletes the lock, even if its owner has read holds.
  "forgotten-downgrade": () => [
    {
      script: "write/release",
      from: "if longest > 0 then\nredis.call('HDEL', lock, field)",
      to: "if false then\nredis.call('HDEL', lock, field)",
    },
  ],

  // A nested write adds its lease to the remaining time.
  "leases-add-up": () => [
    {
      script: "lock/reenter",
      from: "if redis.call('PTTL', lock) < tonumber(lease) then\nredis.call('PEXPIRE', lock, lease) end",
      to: "redis.call('PEXPIRE', lock, redis.call('PTTL', lock) + lease)",
    },
  ],

  // A reader's renewal renews the holds of all readers.
  "renews-all-readers": () => [
    {
      script: "read/renew",
      from: "raise_ttl(read_hold(lock, owner, number), lease)",
      to: "for _, any in ipairs(redis.call('HKEYS', lock)) do raise_ttl(read_hold(lock, any, number), lease) end",
    },
  ],

  // A reader may become a writer while others read.
  "upgrade-admitted": () => [
    {
      from: "if (blocked) throw new LockUpgradeError(backend.lockName);\n\treturn !reads;",
      to: "return true;",
    },
    {
      script: "lock/reenter",
      from: "if not current then\nreturn -redis.call('EXISTS', lock) end",
      to: "current = current or 0\nredis.call('HSET', lock, 'mode', 'write')",
    },
  ],

  // Readers do not check whether a writer waits.
  "ignores-writers": () => [
    { script: "read/acquire", from: "if yield == '1' and not again then", to: "if false then" },
  ],

  // The mark of a waiting writer lives far longer than its writer.
  "undying-writer": () => [
    {
      script: "write/acquire",
      from: "redis.call('ZADD', writers, now + aliveFor, writer)",
      to: "redis.call('ZADD', writers, now + 100 * aliveFor, writer)",
    },
    {
      script: "write/acquire",
      from: "redis.call('PEXPIRE', writers, aliveFor)",
      to: "redis.call('PEXPIRE', writers, 100 * aliveFor)",
    },
  ],
};
