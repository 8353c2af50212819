/**
 * The real library with one mistake each in its semaphores or its latch, made by mutation.mjs: mistakes that Redisson, or
 * some other library, has had.
 *
 * @typedef {import("./mutation.mjs").Edit} Edit
 */

/** @type {Record<string, Edit[]>} */
export const CROWD_MUTANTS = {
  // A call that is sent again takes its permits once more.
  "takes-again": [{ script: "semaphore/acquire", from: "write_marker(marker, count, markerTtl)", to: "" }],

  // A release that is sent again gives back once more.
  "gives-again": [{ script: "semaphore/release", from: "write_marker(marker, '1', markerTtl)", to: "" }],

  // Who gave up keeps what the server has granted meanwhile.
  "keeps-unwanted": [
    { script: "semaphore/undo", from: "give_back(permits, taken, publish, channel)", to: "" },
  ],

  // Nobody hears of permits that are free again.
  "silent-release": [
    {
      script: "semaphore/release",
      from: "redis.pcall(publish, channel, message ~= '' and message or string.format('%.0f', free))",
      to: "",
    },
  ],

  // Drained permits are forgotten when the call is sent again.
  "forgets-drain": [{ script: "semaphore/drain", from: "write_marker(marker, free, markerTtl)", to: "" }],

  // Where one permit is free, many are granted.
  "any-number": [
    { script: "semaphore/acquire", from: "if free < tonumber(count) then", to: "if free < 1 then" },
  ],

  // Permits that lapse together count as one.
  "counts-one": ["acquire", "release", "state", "update"].map((step) => ({
    script: `permits/${step}`,
    from: "give_back(permits, ended, publish, channel)",
    to: "give_back(permits, 1, publish, channel)",
  })),

  // A permit is taken from the number again when its call is sent again.
  "permit-taken-again": [
    { script: "permits/acquire", from: "if redis.call('ZSCORE', leases, member) then", to: "if false then" },
  ],

  // What has lapsed comes back a second time by its late release.
  "lapsed-comes-back": [
    {
      script: "permits/release",
      from: "if not out then",
      to: "if not out then give_back(permits, 1, publish, channel)",
    },
  ],

  // A release that is sent again is told that it has no permit.
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

  // Permits are taken back by a clock that is a minute ahead.
  "hasty-clock": [
    {
      script: "permits/acquire",
      from: "local free = prune(permits, leases, now,",
      to: "local free = prune(permits, leases, now + 60000,",
    },
  ],

  // Nobody hears of a permit that is free again.
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
  "counts-again": [{ script: "latch/count-down", from: "write_marker(marker, '1', markerTtl)", to: "" }],

  // Nobody hears of the opening.
  "silent-opening": [{ script: "latch/count-down", from: "redis.pcall(publish, channel, '0')", to: "" }],

  // Who set the count is told that somebody else did, when the call is sent again.
  "forgets-setting": [{ script: "counter/try-set", from: "write_marker(marker, '1', markerTtl)", to: "" }],
};
