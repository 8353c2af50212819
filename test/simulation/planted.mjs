/**
 * The library with one mistake each, and the kind of lock that shows it.
 *
 * @typedef {object} Planted
 * @property {string} kind of schedules
 * @property {number} seed at which the search for the mistake begins: a few schedules from there find it
 * @property {true} [tellsByHistory] the histories alone show the mistake: they are not linearizable
 * @property {import("./run.mjs").Edit[]} edits
 */

/** @type {Record<string, Planted>} */
export const PLANTED = {
  // The release deletes the lock without checking its owner.
  "frees others": {
    kind: "lock",
    seed: 18,
    tellsByHistory: true,
    edits: [
      {
        script: "lock/release",
        from: "redis.call('HDEL', lock, owner) == 1",
        to: "redis.call('DEL', lock) == 1",
      },
    ],
  },

  // Every call is granted the lock.
  "grants what is held": {
    kind: "lock",
    seed: 1,
    tellsByHistory: true,
    edits: [
      {
        script: "lock/acquire",
        from: "redis.call('EXISTS', lock, tombstone) == 0",
        to: "redis.call('EXISTS', tombstone) == 0",
      },
    ],
  },

  // A call that was given up leaves no tombstone, so its late command takes the lock for no owner.
  "no tombstone": {
    kind: "lock",
    seed: 5322,
    edits: [
      {
        script: "lock/undo",
        from: "if write_tombstone(tombstones[i], tombstoneTtl) then",
        to: "if true then",
      },
    ],
  },

  // The renewal does not check the owner, and tells it that all is well.
  "renews what is not there": {
    kind: "lock",
    seed: 5089,
    edits: [
      {
        script: "lock/renew",
        from: "if redis.pcall('HEXISTS', lock, ARGV[i + 1]) == 1 then",
        to: "if true then",
      },
    ],
  },

  // A reader checks whether the lock is held, but not in which mode.
  "reads beside a writer": {
    kind: "readwrite",
    seed: 1,
    tellsByHistory: true,
    edits: [{ script: "read/acquire", from: "if mode ~= 'read' then", to: "if not mode then" }],
  },

  // The counter of tokens starts from 1 if the server has lost it.
  "tokens from one": {
    kind: "fenced",
    seed: 55,
    edits: [{ from: "if token < floor then", to: "if false then", times: 3 }],
  },

  // The counter of tokens is read, but not raised.
  "tokens that stay": {
    kind: "fenced",
    seed: 1,
    tellsByHistory: true,
    edits: [
      { from: "redis.call('INCR', counter)", to: "redis.call('INCRBY', counter, 0)", times: 3 },
      { from: "if token < floor then", to: "if token == 0 then", times: 3 },
    ],
  },

  // A semaphore grants one permit more than it has.
  "a permit too many": {
    kind: "semaphore",
    seed: 2,
    tellsByHistory: true,
    edits: [
      {
        script: "semaphore/acquire",
        from: "if free < tonumber(count) then",
        to: "if free < tonumber(count) - 1 then",
      },
    ],
  },

  // A call on a semaphore that is sent again counts twice.
  "counts twice": {
    kind: "semaphore",
    seed: 11,
    edits: [{ script: "semaphore/acquire", from: "if earlier then", to: "if false then" }],
  },

  // A call that finds the lock free takes it, even if there is a queue.
  barges: {
    kind: "fair",
    seed: 8,
    edits: [
      {
        script: "fair/acquire",
        from: "if free and (not head or head == owner) then",
        to: "if free then",
      },
    ],
  },

  // The lease counts from the reply, instead of from the moment when its command was sent.
  "deadline from the reply": {
    kind: "lock",
    seed: 22,
    tellsByHistory: true,
    edits: [
      {
        file: "src/locks/acquire.ts",
        from: "this.accept(number, sent, reply.token)",
        to: "this.accept(number, instant(env.clock), reply.token)",
      },
    ],
  },

  // The loss of a hold is not reported.
  "silent loss": {
    kind: "lock",
    seed: 18,
    edits: [
      {
        file: "src/locks/hold-record.ts",
        from: "fate?.controller?.abort(fate.loss);\n    this.#tellOver",
        to: "this.#tellOver",
      },
    ],
  },

  // A nested call is granted, although its owner's holds were lost while the answer was on its way.
  "nested in what is lost": {
    kind: "lock",
    seed: 898,
    edits: [
      {
        file: "src/locks/reenter.ts",
        from: "own.firstHold?.number !== number",
        to: "own.firstHold === null",
      },
    ],
  },

  // The grant of a call that was given up stays on the server.
  "nothing is undone": {
    kind: "lock",
    seed: 3,
    edits: [
      {
        file: "src/locks/acquire.ts",
        from: "if (this.outcomeUnknown && !this.inFlight) void this.undo();",
        to: "",
      },
    ],
  },

  // A waiter sleeps until it is woken, or for an hour.
  "sleeps for an hour": {
    kind: "fair",
    seed: 6,
    edits: [
      {
        file: "src/engine/wait-loop.ts",
        from: "return Math.min(pollCap, Math.max(SHORTEST_SLEEP, ttl + MARGIN + jitter));",
        to: "return 3_600_000;",
      },
    ],
  },

  // A RedLock is handed over to a call by a command that was sent later, and of whose answer nobody tells the call.
  "handed over unheard": {
    kind: "red",
    seed: 1757,
    edits: [
      {
        file: "src/groups/group-release.ts",
        from: "isOver ? undefined : successorAt",
        to: "successorAt",
      },
    ],
  },
};
