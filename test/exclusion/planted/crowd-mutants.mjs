/**
 * The real library with one mistake each in its semaphores or its latch, made by mutation.mjs. Redisson, or some other
 * library, has had these mistakes.
 *
 * @typedef {import("./mutation.mjs").Edit} Edit
 */

/** @type {Record<string, Edit[]>} */
export const CROWD_MUTANTS = {
  // A call that is sent again takes its permits a second time.
  "takes-again": [
    { script: "semaphore/acquire", from: "redis.call('SET', marker, count, 'PX', markerTtl)", to: "" },
  ],

  // A release that is sent again gives its permits back a second time.
  "gives-again": [
    { script: "semaphore/release", from: "redis.call('SET', marker, '1', 'PX', markerTtl)", to: "" },
  ],

  // A call that gave up keeps the permits that the server has granted it meanwhile.
  "keeps-unwanted": [
    { script: "semaphore/undo", from: "give_back(permits, taken, publish, channel)", to: "" },
  ],

  // A release of permits sends no message.
  "silent-release": [
    {
      script: "semaphore/release",
      from: "redis.pcall(publish, channel, message ~= '' and message or string.format('%.0f', free))",
      to: "",
    },
  ],

  // The reply to a drain that is sent again does not count the drained permits.
  "forgets-drain": [
    { script: "semaphore/drain", from: "redis.call('SET', marker, free, 'PX', markerTtl)", to: "" },
  ],

  // If one permit is free, a call gets as many as it wants.
  "any-number": [
    { script: "semaphore/acquire", from: "if free < tonumber(count) then", to: "if free < 1 then" },
  ],

  // Several permits that expire together count as one.
  "counts-one": ["acquire", "release", "state", "update"].map((step) => ({
    script: `permits/${step}`,
    from: "give_back(permits, ended, publish, channel)",
    to: "give_back(permits, 1, publish, channel)",
  })),

  // A call that is sent again takes its permit from the number of free permits once more.
  "permit-taken-again": [
    { script: "permits/acquire", from: "if redis.call('ZSCORE', leases, member) then", to: "if false then" },
  ],

  // The late release of an expired permit gives it back a second time.
  "lapsed-comes-back": [
    {
      script: "permits/release",
      from: "if not out then",
      to: "if not out then give_back(permits, 1, publish, channel)",
    },
  ],

  // A release that is sent again is answered as if there were no such permit.
  "release-forgotten": [
    {
      script: "permits/release",
      from: "write_marker(tombstone, out and call or 'over', tombstoneTtl)",
      to: "",
    },
  ],

  // The watchdog renews nothing, and believes that it did.
  "idle-watchdog": [
    { script: "permits/renew", from: "redis.call('ZADD', key, 'XX', 'GT', now + lease, member)", to: "" },
  ],

  // Permits expire by a clock that is a minute ahead.
  "hasty-clock": [
    {
      script: "permits/acquire",
      from: "local free = prune(permits, leases, now,",
      to: "local free = prune(permits, leases, now + 60000,",
    },
  ],

  // The release of a permit sends no message.
  "silent-permit": [
    {
      script: "permits/release",
      from: "redis.pcall(publish, channel, message ~= '' and message or string.format('%.0f', free))",
      to: "",
    },
  ],

  // The latch is open when one count is left.
  "opens-early": [{ script: "latch/count-down", from: "if left > 1 then", to: "if left > 2 then" }],

  // A count that is sent again counts twice.
  "counts-again": [
    { script: "latch/count-down", from: "redis.call('SET', marker, '1', 'PX', markerTtl)", to: "" },
  ],

  // The opening sends no message.
  "silent-opening": [{ script: "latch/count-down", from: "redis.pcall(publish, channel, '0')", to: "" }],

  // A call that has set the count, and is sent again, is told that another one has set it.
  "forgets-setting": [
    { script: "counter/try-set", from: "redis.call('SET', marker, '1', 'PX', markerTtl)", to: "" },
  ],
};
