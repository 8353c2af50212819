// One process of the crowd of redlock.mjs: waiters that take one lock, hold it for a millisecond and give it back, again and
// again, by a RedLock or by a raw Redlock.
import { setTimeout as pause } from "node:timers/promises";
import { LockClient, RedLock } from "holdfast";
import { Redis } from "ioredis";

/** Milliseconds: a hundredth of it is what a master has for its answer, and the machine may be busy. */
const LEASE = 100_000;
const NAME = "bench:contended";
const GIVE_BACK =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

const counts = { commands: 0, granted: 0, kept: 0 };

/** A Redlock of few lines, as peers have it: a random pause after each lost round, a message from nobody. */
async function rawLock(redises) {
  const quorum = Math.floor(redises.length / 2) + 1;
  const shas = await Promise.all(redises.map((redis) => redis.script("LOAD", GIVE_BACK)));
  const giveBack = (value) =>
    Promise.all(redises.map((redis, i) => redis.evalsha(shas[i], 1, NAME, value).catch(() => 0)));
  let n = 0;
  return async () => {
    const value = `${process.pid}-${++n}`;
    for (;;) {
      const votes = await Promise.all(
        redises.map((redis) => redis.set(NAME, value, "PX", LEASE, "NX").catch(() => null)),
      );
      const won = votes.filter((vote) => vote === "OK").length;
      counts.commands += redises.length;
      counts.granted += won;
      if (won >= quorum) {
        counts.kept += won;
        return () => giveBack(value);
      }
      await giveBack(value);
      await pause(Math.random() * 10);
    }
  };
}

function holdfastLock(redises) {
  const clients = redises.map((redis) => new LockClient(redis));
  for (const redis of redises) countVotes(redis);
  const lock = new RedLock(...clients.map((client) => client.getLock(NAME)));
  return async () => {
    const hold = await lock.lock({ lease: LEASE });
    counts.kept += hold.members.length;
    return () => hold.unlock();
  };
}

/** Counts the scripts that ask for a lock, which have two keys, and those that got it. */
function countVotes(redis) {
  for (const name of ["eval", "evalsha"]) {
    const send = redis[name].bind(redis);
    redis[name] = async (...args) => {
      const reply = await send(...args);
      if (args[1] === 2) {
        counts.commands++;
        if (reply[0] === 1) counts.granted++;
      }
      return reply;
    };
  }
}

async function waiter(take, end, waits) {
  for (let asked = performance.now(); asked < end; asked = performance.now()) {
    const giveBack = await take();
    if (asked < end) waits.push(performance.now() - asked);
    await pause(1);
    await giveBack();
  }
}

export async function work(way, ports, waiters) {
  const redises = ports.map((port) => new Redis({ host: "127.0.0.1", port }));
  await Promise.all(redises.map((redis) => redis.ping()));
  const take = way === "raw" ? await rawLock(redises) : holdfastLock(redises);
  process.on("disconnect", () => process.exit());
  process.on("message", async ({ ms }) => {
    Object.assign(counts, { commands: 0, granted: 0, kept: 0 });
    const waits = [];
    const end = performance.now() + ms;
    await Promise.all(Array.from({ length: waiters }, () => waiter(take, end, waits)));
    process.send({ ...counts, waits });
  });
}
