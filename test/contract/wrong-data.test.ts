/** Contract section 6: a key that holds other data is refused by every operation, and the data stays as it is. */
import { expect } from "vitest";
import type { Lock } from "../../src/index.js";
import { failure, type Place, row, SINGLE, watch } from "../support/place/index.js";

const ONE = { kinds: SINGLE };

const never = (): never => {
  throw new Error("fn was called");
};

const READER = "6e3814a1-e847-452b-a982-45baf93a1df2:37";
const ENDLESS = String(10 ** 12);

/** The command that writes each kind of data, with the key after its first word. */
const DATA: readonly (readonly [what: string, verb: string, ...args: string[]])[] = [
  ["a string", "SET", "paid"],
  ["a string with a TTL", "SET", "paid", "PX", "60000"],
  ["a list", "RPUSH", "a", "b"],
  ["a zset", "ZADD", "1", "a"],
  ["a hash", "HSET", "name", "Ada"],
  ["a hash of several fields", "HSET", "name", "Ada", "age", "36"],
  ["a hash of counts", "HSET", "sku:17", "2"],
  ["a hash with the field mode alone", "HSET", "mode", "read"],
  ["a hash with the field mode", "HSET", "mode", "dark", "name", "Ada"],
  ["a hash whose mode is that of a read lock", "HSET", "mode", "read", "name", "Ada"],
  ["a hash whose mode is that of a write lock", "HSET", "mode", "write", "a:write", "1"],
  ["a hash with an endless count", "HSET", "mode", "read", "k", ENDLESS],
  ["a read lock with an endless count", "HSET", "mode", "read", READER, ENDLESS],
  [
    "a large hash",
    "HSET",
    "mode",
    "read",
    ...Array.from({ length: 100 }, (_, i) => [`f${i}`, `${i}`]).flat(),
  ],
];

const CALLS: [name: string, call: (lock: Lock) => Promise<unknown>][] = [
  ["lock", (lock) => lock.lock()],
  ["lock with a lease and a wait", (lock) => lock.lock({ lease: 5_000, wait: 5_000 })],
  ["tryLock", (lock) => lock.tryLock()],
  ["tryLock with a wait", (lock) => lock.tryLock(5_000, 5_000)],
  ["run", (lock) => lock.run(never)],
  ["forceUnlock", (lock) => lock.forceUnlock()],
  ["isLocked", (lock) => lock.isLocked()],
  ["remainTimeToLive", (lock) => lock.remainTimeToLive()],
];

const READS: Readonly<Record<string, readonly string[]>> = {
  string: ["GET"],
  list: ["LRANGE", "0", "-1"],
  zset: ["ZRANGE", "0", "-1"],
  hash: ["HGETALL"],
};

/** All that the key has, and whether it has a TTL. */
async function dataOf({ view }: Place): Promise<unknown> {
  const type = String(await view.call("TYPE", view.name));
  const [verb = "EXISTS", ...args] = READS[type.replace(/.*ok: /, "")] ?? [];
  return [type, await view.call(verb, view.name, ...args), (await view.ttl()) > 0];
}

for (const [name, call] of CALLS) {
  row.real(
    `${name} of a key that holds other data rejects WRONG_DATA at once, and the data stays [§6 wrong-data] [F26]`,
    ONE,
    async (place) => {
      const { lock, view } = place;
      for (const [what, verb, ...args] of DATA) {
        await view.call("DEL", view.name);
        await view.call(verb, view.name, ...args);
        const before = await dataOf(place);
        const error = await failure(call(lock));
        expect(error, what).toMatchObject({ code: "WRONG_DATA", lockName: lock.name });
        for (const word of ["WRONGTYPE", lock.name]) expect(error.message, what).toContain(word);
        expect(await dataOf(place), what).toEqual(before);
      }
      await view.call("DEL", view.name);
    },
  );
}

row(
  "data that somebody writes over a held lock is a loss to the holder, and stays when the hold is given back [§6 wrong-data]",
  ONE,
  async ({ lock, view }) => {
    const hold = await lock.lock();
    await view.call("SET", view.name, "paid");
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
    expect(await view.call("GET", view.name)).toBe("paid");
    await view.call("DEL", view.name);
  },
);

row(
  "data over a held lock rejects those who wait [§6 wrong-data]",
  ONE,
  async ({ lock, rival, view, pass, settle }) => {
    const hold = await rival.lock();
    const waiting = watch(lock.lock());
    await settle();
    await view.call("SET", view.name, "paid");
    await pass(3_100);
    expect(waiting.error).toMatchObject({ code: "WRONG_DATA" });
    await failure(hold.unlock());
    expect(await view.call("GET", view.name)).toBe("paid");
    await view.call("DEL", view.name);
  },
);
