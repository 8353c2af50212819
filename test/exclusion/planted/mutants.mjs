/**
 * The real library with one mistake each, made by mutation.mjs: mistakes that Redisson, or some other lock, has had.
 *
 * @typedef {import("./mutation.mjs").Edit} Edit
 */

const CLOCK = "return time[1] * 1000 + math.floor(time[2] / 1000)";
const FAIR_SCRIPTS = ["fair/acquire", "fair/release", "fair/undo"];

/** @type {Record<string, (options: { skew?: number }) => Edit[]>} */
export const MUTANTS = {
  // The release deletes the lock without asking whose it is by now.
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

  // The queue is pruned by the clocks of the processes; one of them is wrong by `skew` ms.
  "client-clock": ({ skew = 0 }) =>
    FAIR_SCRIPTS.map((script) => ({ script, from: CLOCK, to: `${CLOCK} + ${skew}` })),

  // The head of a queue is only dropped when its time is over, and one without a time has none that could be.
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

  // A waiter that gives up leaves the queue and wakes nobody, also when the lock was its to take.
  "silent-abandon": () => [
    {
      script: "fair/undo",
      from: "wake_next(queue, channel, publish) end\nreturn undone",
      to: "end\nreturn undone",
    },
  ],

  // Whoever finds the lock free takes it, queue or not.
  barging: () => [
    { script: "fair/acquire", from: "if free and (not head or head == owner) then", to: "if free then" },
  ],

  // Only Redisson's word on who is alive: minutes for each waiter that died.
  "patient-queue": () =>
    FAIR_SCRIPTS.map((script) => ({
      script,
      from: "tonumber(redis.call('ZSCORE', alive, waiter) or timeout)",
      to: "tonumber(timeout)",
    })),

  // The counter of tokens goes with the lease.
  "expiring-counter": () =>
    ["fenced/acquire", "fenced/pass"].flatMap((script, i) => [
      { script, from: "if token < floor then", to: "if false then" },
      {
        script,
        from: "redis.call('INCR', counter)",
        // The lease is another argument of each.
        to: `redis.call('INCR', counter)\nredis.call('PEXPIRE', counter, ARGV[${i + 2}])`,
      },
    ]),

  // The counter starts from 1 when the server has forgotten it.
  "counter-from-one": () =>
    ["fenced/acquire", "fenced/pass"].map((script) => ({
      script,
      from: "if token < floor then",
      to: "if false then",
    })),

  // The tokens come from a counter that Java does not know.
  "own-counter": () => [
    {
      from: 'prefixed("redisson_lock_token", name)',
      to: 'prefixed("holdfast_lock_token", name)',
    },
  ],

  // A reader looks whether the lock is there, and not for what.
  "reader-beside-writer": () => [
    { script: "read/acquire", from: "if mode ~= 'read' then", to: "if not mode then" },
  ],

  // The last to come is taken for the last to go.
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

  // A writer that goes on as a reader tells nobody that others may read as well.
  "silent-downgrade": () => [
    {
      script: "write/release",
      from: "redis.pcall(publish, channel, '1')",
      to: "if redis.call('EXISTS', lock) == 0 then redis.pcall(publish, channel, '1') end",
    },
  ],

  // The last write hold deletes the lock, whatever reads its owner has.
  "forgotten-downgrade": () => [
    {
      script: "write/release",
      from: "if longest > 0 then\nredis.call('HDEL', lock, field)",
      to: "if false then\nredis.call('HDEL', lock, field)",
    },
  ],

  // A nested write adds its lease to what is left.
  "leases-add-up": () => [
    {
      script: "lock/reenter",
      from: "raise_ttl(lock, lease)",
      to: "redis.call('PEXPIRE', lock, redis.call('PTTL', lock) + lease)",
    },
  ],

  // A reader's renewal keeps everybody's reads.
  "renews-all-readers": () => [
    {
      script: "read/renew",
      from: "raise_ttl(read_hold(lock, owner, number), lease)",
      to: "for _, any in ipairs(redis.call('HKEYS', lock)) do raise_ttl(read_hold(lock, any, number), lease) end",
    },
  ],

  // A reader may come to write, beside the others that read.
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

  // Readers do not look whether a writer waits.
  "ignores-writers": () => [
    { script: "read/acquire", from: "if yield == '1' and not again then", to: "if false then" },
  ],

  // The mark of a waiting writer outlives it by far.
  "undying-writer": () => [
    {
      script: "write/acquire",
      from: "redis.call('ZADD', writers, now + aliveFor, writer)",
      to: "redis.call('ZADD', writers, now + 100 * aliveFor, writer)",
    },
    {
      script: "write/acquire",
      from: "raise_ttl(writers, aliveFor)",
      to: "raise_ttl(writers, 100 * aliveFor)",
    },
  ],
};
