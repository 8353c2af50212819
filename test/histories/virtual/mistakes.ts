/** Mistakes that locks have had; each can be planted into a virtual lock by its name. */
import type { LockKind } from "./lock-store.js";

export interface Row {
  readonly title: string;
  readonly game: LockKind;
  /** The defect of Redisson that this is. */
  readonly redisson?: keyof typeof REDISSON;
}

/** The defects of Redisson that are regressions here: its issues, or what its source does. */
export const REDISSON = {
  COUNTS: "#7367, #7368, #6025, #4822, #4178, #1966",
  LATCH: "#6748",
  MISSED: "#5761, #3891, #4744, #763, #6539",
  STRAY: "#7272",
  WATCHDOG: "#2515, #3194, #3712, #775",
  UNTOLD: "#4698",
  DEAD: "#5019, #1104, #3730, #4323",
  READERS: "#7098, #1604, #2144, #4217",
  DOWNGRADE: "write to read: not published, leases add up",
  GROUPS: "MultiLock's unchecked expire, RedLock's missing validity",
  SCORES: "fair scores by the client's clock",
  TRANSIENT: "#612, #4706, NOSCRIPT",
} as const;

const table = {
  "acquire-resent": {
    title: "an acquire that is sent again counts twice",
    game: "lock",
    redisson: "COUNTS",
  },
  "release-abandoned": {
    title: "a timed-out unlock is given up, and the watchdog goes on",
    game: "lock",
    redisson: "COUNTS",
  },
  "release-resent": {
    title: "a release that is sent again gives back twice",
    game: "lock",
    redisson: "LATCH",
  },
  "release-unremembered": {
    title: "a release that is sent again says that nothing was held",
    game: "lock",
    redisson: "LATCH",
  },
  "silent-release": { title: "an unlock is announced to nobody", game: "lock", redisson: "MISSED" },
  "gap-unnoticed": {
    title: "after a cut subscription nobody looks again",
    game: "lock",
    redisson: "MISSED",
  },
  "no-second-look": {
    title: "no second try once the subscription stands",
    game: "lock",
    redisson: "MISSED",
  },
  "renewal-after-unlock": {
    title: "a renewal goes on after the unlock",
    game: "lock",
    redisson: "STRAY",
  },
  "watchdog-dies": {
    title: "a renewal without an answer ends the watchdog",
    game: "lock",
    redisson: "WATCHDOG",
  },
  "loss-untold": { title: "a renewal that fails is told to nobody", game: "lock", redisson: "UNTOLD" },
  "undying-place": {
    title: "one that died in line blocks it for minutes",
    game: "fair",
    redisson: "DEAD",
  },
  "renews-all-readers": {
    title: "a reader's renewal keeps a dead reader's lease",
    game: "read-write",
    redisson: "READERS",
  },
  "reader-shortens": {
    title: "a reader's lease replaces those of others",
    game: "read-write",
    redisson: "READERS",
  },
  "downgrade-unrenewed": {
    title: "what is left of a downgrade is not renewed",
    game: "read-write",
    redisson: "READERS",
  },
  "silent-downgrade": {
    title: "a downgrade is announced to nobody",
    game: "read-write",
    redisson: "DOWNGRADE",
  },
  "leases-add-up": {
    title: "the leases of nested holds add up",
    game: "read-write",
    redisson: "DOWNGRADE",
  },
  "renews-anyones": {
    title: "a renewal extends whoever holds the lock",
    game: "lock",
    redisson: "GROUPS",
  },
  "deadline-from-reply": {
    title: "the deadline counts from the answer",
    game: "lock",
    redisson: "GROUPS",
  },
  "expiry-unnoticed": {
    title: "a lease that is over is still held",
    game: "lock",
    redisson: "GROUPS",
  },
  "client-clock": {
    title: "the queue is pruned by clients' clocks",
    game: "fair",
    redisson: "SCORES",
  },
  "error-is-release": {
    title: "a transient error is taken for a release",
    game: "lock",
    redisson: "TRANSIENT",
  },
  "replicas-short-left": {
    title: "a grant that too few replicas have fails, and stays",
    game: "lock",
    redisson: "TRANSIENT",
  },
  "no-ttl": { title: "the lock has no TTL", game: "lock" },
  "frees-others": { title: "a release does not ask whose the lock is", game: "lock" },
  "no-undo": { title: "a call without an answer is not undone", game: "lock" },
  "no-tombstone": { title: "an acquire that arrives after its undo is granted", game: "lock" },
  "grant-kept": { title: "a call that is given up keeps what it was granted", game: "lock" },
  "undo-frees-all": { title: "undoing a nested call frees the outer hold", game: "lock" },
  "not-reentrant": { title: "the owner is refused its own lock", game: "lock" },
  "nested-shortens": { title: "a nested hold shortens the outer one", game: "lock" },
  "nested-token": { title: "a nested hold has a token of its own", game: "lock" },
  "release-frees-all": { title: "giving back a nested hold ends the outer one", game: "lock" },
  "renewal-revives": { title: "a renewal takes a lost lock back", game: "lock" },
  "token-repeats": { title: "a token is given out twice", game: "lock" },
  "token-by-clock": { title: "tokens come from clocks that are not exact", game: "lock" },
  "counts-one": { title: "the hold count is never above 1", game: "lock" },
  "stale-look": { title: "isLocked asks a replica that lags behind", game: "lock" },
  "lapsed-refuses": { title: "a lease that is over refuses one more", game: "lock" },
  "force-frees-nothing": { title: "a forced unlock frees nothing", game: "lock" },
  barging: { title: "whoever comes to a free lock passes the queue", game: "fair" },
  "last-first": { title: "the last of the queue comes first", game: "fair" },
  "silent-abandon": { title: "one first in line gives up and wakes nobody", game: "fair" },
  "stays-in-line": { title: "one that gave up stays in line", game: "fair" },
  "reader-beside-writer": { title: "a reader enters beside a writer", game: "read-write" },
  "writer-beside-readers": { title: "a writer enters beside readers", game: "read-write" },
  "frees-other-readers": { title: "a reader that leaves ends all reads", game: "read-write" },
  "upgrade-admitted": { title: "a reader becomes a writer", game: "read-write" },
  "downgrade-forgotten": { title: "a writer's release ends its reads", game: "read-write" },
  "read-cuts-write": { title: "a nested read cuts the write's lease", game: "read-write" },
  "ignores-writers": { title: "readers pass a waiting writer", game: "read-write" },
  "zombie-reader": { title: "a reader whose lease is over still counts", game: "read-write" },
} as const;

export type Mistake = keyof typeof table;

export const mistakes: Readonly<Record<Mistake, Row>> = table;
