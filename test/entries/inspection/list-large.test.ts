import { expect, test } from "vitest";
import { type Hold, LockClient } from "../../../src/index.js";
import { findRedis, forFile, hasFeaturesOf, PATIENCE, startRedis, UNHURRIED } from "../../support/index.js";
import { namesOf } from "./helpers.js";

const KEYS = 200_000;
const STEP = 50_000;
const ATTEMPTS = 5;

const holds: Hold[] = [];

const guarded = hasFeaturesOf(await findRedis(), "7.0.0"); // from Redis 7 on, DEBUG must be allowed
const server = await forFile(startRedis({ args: guarded ? ["--enable-debug-command", "yes"] : [] }));
const redis = server.connect();
for (let i = 0; i < KEYS / STEP; i++) await redis.call("DEBUG", "POPULATE", STEP, `key:${i}`);
const client = await forFile(new LockClient(redis, UNHURRIED));
// A long lease, because a process that is busy with so many keys renews too late.
const lease = 60 * PATIENCE;
for (const name of ["first", "second", "third"]) holds.push(await client.getLock(name).lock({ lease }));

/** The longest time that the server spent on one command, in ms; and how often it answered another client meanwhile. */
async function longestStep(work: () => Promise<unknown>): Promise<{ longest: number; answered: number }> {
  await redis.config("SET", "slowlog-log-slower-than", "0");
  await redis.config("SET", "slowlog-max-len", "1000000");
  await redis.call("SLOWLOG", "RESET");
  const other = server.connect();
  await other.ping();
  let over = false;
  const done = work().finally(() => {
    over = true;
  });
  let answered = 0;
  for (; !over; answered++) await other.ping();
  await done;
  await redis.config("SET", "slowlog-log-slower-than", "-1");
  const log = (await redis.call("SLOWLOG", "GET", "-1")) as [id: number, at: number, micros: number][];
  other.disconnect();
  return { longest: Math.max(...log.map(([, , micros]) => micros)) / 1_000, answered };
}

test("the locks are found, and nobody else waits for long", async () => {
  // Looks at all keys in one step, as KEYS does, without sending them.
  const keys = await longestStep(() => redis.eval("return #redis.call('KEYS', 'key:*')", 0));
  let names: string[] = [];
  const most = keys.longest / 4;
  let list = { longest: Number.POSITIVE_INFINITY, answered: 0 };
  // A step that is long by itself is long each time. A step during which the server stood still is not, so it is
  // repeated.
  for (let attempt = 0; attempt < ATTEMPTS && list.longest >= most; attempt++) {
    list = await longestStep(async () => {
      names = await namesOf(client);
    });
    expect(names).toEqual(["first", "second", "third"]);
  }
  expect(list.longest).toBeLessThan(most);
  expect(list.answered).toBeGreaterThan(100);
});

test("a match picks one of them", async () => {
  expect(await namesOf(client, { match: "sec*" })).toEqual(["second"]);
});
