/** Random names: each is refused before anything is sent, or is the key of one lock; no other key is touched. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Hold, LockClient } from "../../../src/index.js";
import { forFile, startRedis, UNHURRIED } from "../../support/index.js";
import { AGAIN, RUNS, SEED } from "./runs.js";

/** How many locks are held at the same time. */
const BATCH = 1_000;

const server = await forFile(startRedis());

const HOSTILE = [
  "{",
  "}",
  "{}",
  ":",
  "*",
  "?",
  "[a]",
  "\\",
  "\0",
  "\r\n",
  "*1\r\n$4\r\nPING\r\n",
  "'",
  '"',
  " ",
  "%s",
  "__proto__",
];
const piece = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string({ unit: "binary", maxLength: 4 }),
  fc.string({ unit: "grapheme", maxLength: 4 }),
  // Any UTF-16 code unit, also halves of surrogate pairs.
  fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
  fc.nat(200).map((length) => "é".repeat(length)),
);
const names = fc.array(piece, { minLength: 0, maxLength: 8 }).map((pieces) => pieces.join(""));

const isAllowed = (name: string): boolean => {
  const bytes = Buffer.byteLength(name);
  return (
    bytes > 0 &&
    bytes <= 512 &&
    !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(name)
  );
};

test(`${RUNS} names are refused by the getter, or are held and given back alone`, {
  timeout: 600_000,
}, async () => {
  await using client = new LockClient(server.connect(), UNHURRIED);
  const redis = server.connect();
  const all = fc.sample(names, { numRuns: RUNS, seed: SEED });
  let refused = 0;
  for (let from = 0; from < all.length; from += BATCH) {
    const batch = new Set(all.slice(from, from + BATCH));
    const calls: Promise<Hold | null>[] = [];
    const allowed: string[] = [];
    for (const name of batch) {
      if (isAllowed(name)) {
        allowed.push(name);
        calls.push(client.getLock(name).tryLock());
      } else {
        refused++;
        expect(() => client.getLock(name), `${JSON.stringify(name)}: ${AGAIN}`).toThrow(RangeError);
      }
    }
    const holds = await Promise.all(calls);
    // The keys of the database are exactly the held names, byte for byte.
    const keys = (await redis.keysBuffer("*")).map(String);
    expect(keys.sort(), AGAIN).toEqual(allowed.sort());
    await Promise.all(holds.map((hold) => hold?.unlock()));
    expect(await redis.exists(...allowed), AGAIN).toBe(0);
    await redis.flushdb(); // only markers are left, which expire
  }
  expect(refused).toBeGreaterThan(0);
  expect(Object.getPrototypeOf({})).toBe(Object.prototype);
});
