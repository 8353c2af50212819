/** Data of others in the keys: every script refuses or ignores it, and no script loops because of a number in it. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as generated from "../../src/scripts/generated.js";
import type { AnyScript } from "../../src/scripts/script.js";
import { headerOf, type Named } from "../support/named.js";
import { LOCK, ME, OTHER, type States, scored, useBench } from "./bench.js";
import { hex, LEASES, LONG_GONE, MINE, NUMBER, number, OTHER_DATA } from "./counts.js";
import { refusal, WRONGTYPE } from "./table.js";

const bench = await useBench();

const all = Object.values(generated) as unknown as AnyScript[];
const hasKey = (script: AnyScript, names: RegExp) =>
  headerOf(script).keys.some(({ name }) => names.test(name));
const scripts = all.filter((script) => hasKey(script, /^locks?$/));
const counting = all.filter(({ name }) => /^(counter|latch|permits|semaphore)\//.test(name));
const byName = (some: readonly AnyScript[]) => some.map((script) => [script.name, script] as const);

/** Scripts that an owner without a hold may call. */
const REFUSING = /\/(take|force|inspect)$/;
const THIRD = ME.replace(/\d+$/, "-3");
const field = fc.oneof(
  fc.constantFrom("mode", "name", "", ":write", "1", OTHER, THIRD, `${OTHER}:write`),
  fc.constantFrom("sku:17", "client:1", `${OTHER}x`, `x${OTHER}`, `${OTHER}:write:write`, "a-b-c-d-e:1"),
  fc.string({ maxLength: 8 }),
);
const value = fc.oneof(
  fc.constantFrom(
    "read",
    "write",
    "1",
    "99999",
    "1000000000000",
    "-1",
    "0",
    "inf",
    "nan",
    "1e99",
    "0x7fffffff",
  ),
  fc.string({ maxLength: 8 }),
);
const entries = fc.uniqueArray(fc.tuple(field, value), {
  minLength: 1,
  maxLength: 9,
  selector: ([name]) => name,
});

/** Whether the hash is a lock's, by the contract; written differently from the scripts. */
function isLock(hash: readonly [string, string][]): boolean {
  const owner = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:-?\\d+";
  const shared = hash.some(([name, text]) => name === "mode" && /^(read|write)$/.test(text));
  const fits = ([name, text]: [string, string]) =>
    shared
      ? name === "mode" ||
        (RegExp(`^${owner}$`).test(name) && /^\d{1,5}$/.test(text)) ||
        (RegExp(`^${owner}:write$`).test(name) && /^\d+$/.test(text))
      : RegExp(`^${owner}$`).test(name) && /^\d+$/.test(text);
  return hash.every(fits) && (shared ? hash.length > 1 : hash.length === 1);
}

const foreign = fc.record({
  hash: fc.oneof(
    entries,
    entries.map((some) => [
      ["mode", "read"] as [string, string],
      ...some.filter(([name]) => name !== "mode"),
    ]),
    entries.map((some) => [
      ["mode", "write"] as [string, string],
      ...some.filter(([name]) => name !== "mode"),
    ]),
  ),
  ttl: fc.constantFrom(-1, 60_000),
  over: fc.boolean(),
  number: fc.integer({ min: 0, max: 2 }),
});

const TEXTS: Record<string, string> = {
  id: hex(MINE),
  call: "a call",
  message: "",
  owner: ME,
  field: `${ME}:write`,
  successor: ME.replace(/\d+$/, "9"),
  successorField: ME.replace(/\d+$/, "9:write"),
  publish: "PUBLISH",
  tombstones: "redisson_unlock_latch:{job}:",
  nextWriter: "",
};
const LISTS: Record<string, readonly unknown[]> = {
  ids: [hex(MINE)],
  owners: [ME],
  coWaiters: [OTHER],
  counts: ["1"],
  reads: ["1"],
  writes: ["1"],
};
const KEYS: Record<string, readonly string[]> = {
  leases: [LEASES],
  locks: [LOCK],
  tombstones: ["tombstone:{job}"],
};

const PLACES: Record<string, string> = {
  lock: LOCK,
  permits: NUMBER,
  number: NUMBER,
  count: NUMBER,
  leases: LEASES,
};

/** Arguments as the library may send them. */
function inputs(script: AnyScript, number: number): { keys: Named; args: Named } {
  const header = headerOf(script);
  const keys = header.keys.map(({ name, variadic }) => [
    name,
    variadic ? KEYS[name] : (PLACES[name] ?? `${name}:{job}`),
  ]);
  const args = header.args.map(({ name, type, variadic }) => {
    if (variadic) return [name, LISTS[name]];
    if (type === "text") return [name, TEXTS[name]];
    if (type === "ms") return [name, 5_000];
    return [name, name === "latest" ? 0 : number];
  });
  return { keys: Object.fromEntries(keys), args: Object.fromEntries(args) };
}

/** Hashes of other owners' locks, as Redisson and this library make them. */
const LOCKS: Record<string, Record<string, string>> = {
  "a lock": { [OTHER]: "1" },
  "a lock that is held many times, by a negative id": { [`${OTHER.replace(/\d+$/, "-3")}`]: "1234567" },
  "a lock of two readers": { mode: "read", [OTHER]: "99999", [THIRD]: "1" },
  "a lock of a writer": { mode: "write", [`${OTHER}:write`]: "1234567" },
  "a lock of a writer that reads": { mode: "write", [`${OTHER}:write`]: "1", [OTHER]: "2" },
};

const NO_LOCKS: Record<string, Record<string, string>> = {
  "a name that is no owner": { "sku:17": "1" },
  "a count that is none": { [OTHER]: "one" },
  "an owner with something before it": { [`x${OTHER}`]: "1" },
  "an owner with something behind it": { [`${OTHER}x`]: "1" },
  "two owners without a mode": { [OTHER]: "1", [THIRD]: "1" },
  "two owners in some other mode": { mode: "shared", [OTHER]: "1", [THIRD]: "1" },
  "a mode alone": { mode: "read" },
  "a writer without a mode": { [`${OTHER}:write`]: "1" },
  "a writer whose count is none": { mode: "write", [`${OTHER}:write`]: "1.5" },
  "a reader of six digits": { mode: "read", [OTHER]: "100000" },
  "a reader beside something else": { mode: "read", [OTHER]: "1", name: "1" },
  "a writer's writer": { mode: "write", [`${OTHER}:write:write`]: "1" },
};

/** The number of commands that the server has run since the last reset. */
async function commands(): Promise<number> {
  const stats = await bench.redis.info("commandstats");
  return [...stats.matchAll(/:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

const run = (script: AnyScript, number = 0): Promise<unknown> => {
  const { keys, args } = inputs(script, number);
  return bench.runner(script)(keys, args);
};
const outcome = (script: AnyScript): Promise<unknown> =>
  run(script).catch((error: Error) => ({ error: error.message }));

const INSPECT = "lock/inspect";
const refusing = all.filter(
  ({ name }) =>
    name === INSPECT || (counting.some((each) => each.name === name) && !/(try-set|undo|renew)$/.test(name)),
);
const noNumbers: typeof OTHER_DATA = {
  ...OTHER_DATA,
  "a number below 0 that Redis does not count": [number(`-${2n ** 63n}1`), refusal("integer")],
};

test.each(byName(refusing))("%s refuses a number that is none [B117]", async (name, script) => {
  const leases: States = headerOf(script).keys.some((key) => key.name === "leases")
    ? { [LEASES]: scored({ [LONG_GONE]: -1 }) }
    : {};
  for (const [title, [state, reply]] of Object.entries(noNumbers)) {
    await bench.put({ [NUMBER]: state, ...leases });
    expect(await outcome(script), title).toEqual(name === INSPECT ? WRONGTYPE : reply);
    await bench.expect({ [NUMBER]: state, ...leases });
  }
});

test.each(byName(scripts.filter(({ name }) => REFUSING.test(name))))(
  "%s refuses a hash that is no lock, and no other [B117]",
  async (_, script) => {
    const hashes = [...Object.entries(LOCKS), ...Object.entries(NO_LOCKS)];
    for (const [title, hash] of hashes) {
      const refused = !isLock(Object.entries(hash));
      expect(refused, title).toBe(title in NO_LOCKS);
      await bench.redis.flushall();
      await bench.redis.hset(LOCK, hash);
      const reply = await outcome(script);
      if (!refused) expect(reply, title).not.toHaveProperty("error");
      else {
        expect(reply, title).toEqual(refusal(/^(ERR )?WRONGTYPE/));
        expect(await bench.redis.hgetall(LOCK), title).toEqual(hash);
      }
    }
  },
);

test.each(byName(scripts))(
  "%s leaves a hash that is no lock as it is, and takes no longer than the hash is [B7]",
  async (name, script) => {
    await fc.assert(
      fc.asyncProperty(foreign, async ({ hash, ttl, over, number }) => {
        fc.pre(!isLock(hash));
        await bench.redis.flushall();
        await bench.redis.hset(LOCK, new Map(hash));
        if (ttl > 0) await bench.redis.pexpire(LOCK, ttl);
        if (over) await bench.redis.set("tombstone:{job}", "1", "PX", 60_000);
        const before = await bench.redis.hgetall(LOCK);
        await bench.redis.config("RESETSTAT");
        const refused = await run(script, number).then(
          () => false,
          (error: Error) => {
            expect(error.message).toContain("WRONGTYPE");
            return true;
          },
        );
        if (REFUSING.test(name) && !over) expect(refused).toBe(true);
        expect(await commands()).toBeLessThan(20_000);
        expect(await bench.redis.hgetall(LOCK)).toEqual(before);
        const left = await bench.redis.pttl(LOCK);
        expect(left > 0).toBe(ttl > 0);
        if (ttl > 0) expect(left).toBeGreaterThan(30_000);
      }),
      { numRuns: 50 },
    );
  },
);
