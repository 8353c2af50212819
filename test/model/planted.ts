/** Mistakes, one at a time, that are planted into the real library and removed again. */
import { LockAcquisition } from "../../src/locks/acquire.js";
import { renewal } from "../../src/locks/renewal.js";
import {
  fairAcquire,
  fairUndo,
  lockAcquire,
  lockReenter,
  lockRelease,
  lockRenew,
  readAcquire,
  writeRelease,
} from "../../src/scripts/generated.js";
import { inClass, inScript } from "./planting.js";

export interface Mistake {
  readonly title: string;
  /** The kind of lock that has the mistake. */
  readonly kind: string;
  /** Plants the mistake; returns a function that removes it. */
  plant(): () => void;
}

const RAISED = "if redis.call('PTTL', lock) < tonumber(lease) then\nredis.call('PEXPIRE', lock, lease) end";
const REVIVED = "redis.call('HSET', lock, ARGV[i + 1], 1)";
const FREED = "redis.call('HDEL', lock, owner) == 1";

export const mistakes: readonly Mistake[] = [
  {
    title: "an unlock frees whoever holds the lock",
    kind: "plain lock",
    plant: () => inScript(lockRelease, FREED, "redis.call('DEL', lock) == 1"),
  },
  {
    title: "an unlock is announced to nobody",
    kind: "plain lock",
    plant: () => inScript(lockRelease, "redis.pcall(publish, channel, '0')", ""),
  },
  {
    title: "an unlock ends the outer holds, too",
    kind: "plain lock",
    plant: () => inScript(lockRelease, "count ~= '0' and left ~= '0'", "false"),
  },
  {
    title: "the leases of nested holds add up",
    kind: "plain lock",
    plant: () =>
      inScript(lockReenter, RAISED, "redis.call('PEXPIRE', lock, redis.call('PTTL', lock) + lease)"),
  },
  {
    title: "a nested hold shortens the outer one",
    kind: "plain lock",
    plant: () => inScript(lockReenter, RAISED, "redis.call('PEXPIRE', lock, lease)"),
  },
  {
    title: "a lock is made without TTL",
    kind: "plain lock",
    plant: () => inScript(lockAcquire, "redis.pcall('PEXPIRE', lock, lease)", "1"),
  },
  {
    title: "a renewal brings back what was taken away",
    kind: "plain lock",
    plant: () => inScript(lockRenew, "redis.pcall('HEXISTS', lock, ARGV[i + 1]) == 1", REVIVED),
  },
  {
    title: "the watchdog sleeps",
    kind: "plain lock",
    plant: () =>
      inClass(renewal, "nextDue", ({ firstHold, table }) =>
        firstHold ? table.env.clock.mono() + firstHold.remaining : Number.POSITIVE_INFINITY,
      ),
  },
  {
    title: "a hold whose lease is over is still held",
    kind: "plain lock",
    plant: () => inClass(renewal, "nextDue", () => Number.POSITIVE_INFINITY),
  },
  {
    title: "the last of the queue comes first",
    kind: "fair lock",
    plant: () => inScript(fairAcquire, "redis.call('RPUSH', queue", "redis.call('LPUSH', queue"),
  },
  {
    title: "who comes to a free lock does not mind the queue",
    kind: "fair lock",
    plant: () => inScript(fairAcquire, "free and (not head or head == owner)", "free"),
  },
  {
    title: "who gives up stays in the queue",
    kind: "fair lock",
    plant: () => inScript(fairUndo, "withdraw(ended) and 1 or 0", "0"),
  },
  {
    title: "a reader enters beside a writer",
    kind: "read-write lock, writers first",
    plant: () => inScript(readAcquire, "if mode ~= 'read' then", "if false then"),
  },
  {
    title: "readers do not mind a writer that waits",
    kind: "read-write lock, writers first",
    plant: () => inScript(readAcquire, "yield == '1'", "false"),
  },
  {
    title: "a reader becomes a writer",
    kind: "read-write lock, nobody first",
    plant() {
      const ends = [
        inClass(LockAcquisition.prototype, "hasTurn", () => true),
        inScript(lockReenter, "redis.call('HGET', lock, owner)", "(redis.call('HGET', lock, owner) or '0')"),
      ];
      return () => {
        for (const end of ends) end();
      };
    },
  },
  {
    title: "a downgrade is announced to nobody",
    kind: "read-write lock, nobody first",
    plant: () => inScript(writeRelease, "redis.pcall(publish, channel, '1')", ""),
  },
];
