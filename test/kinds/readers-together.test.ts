/** Readers that wait behind a writer get the lock together, by few scripts; each has a hold and a lease of its own. */
import { expect, test } from "vitest";
import type { Hold } from "../../src/index.js";
import { KINDS, type Kind } from "../contract/kinds.js";
import {
  type Bed,
  failOnUnhandledRejections,
  Stage,
  script,
  soon,
  type Watched,
  watch,
} from "../faults/harness.js";
import { expectNothingLeft, expectNothingLeftSoon } from "../faults/remains.js";
import { forFile, type KeyState, until } from "../support/index.js";
import { keysOf, NEVER } from "./helpers.js";

const READERS = 250;
const kind = KINDS.find(({ name }) => name === "read side") as Kind;
/** Few, because the first granted try tells the other readers, and one script takes many of them. */
const MOST_SCRIPTS = 8;

failOnUnhandledRejections();
const stage = await forFile(Stage.start(["standalone"]));

interface Wait extends AsyncDisposable {
  readonly bed: Bed;
  readonly writer: Hold;
  readonly readers: readonly Watched<Hold>[];
  readonly controllers: readonly AbortController[];
}

/** The lease of reader `i`. */
const leaseOf = (i: number): number => 30_000 + 100 * i;

/** Readers of one client that wait for a writer of another client. */
async function lineUp(readers: number = READERS): Promise<Wait> {
  const bed = await stage.bed({ kind, client: { pollCap: NEVER } });
  const other = await stage.bed({ kind });
  const writer = await other.rival(bed.name).lock();
  const controllers = Array.from({ length: readers }, () => new AbortController());
  const calls = controllers.map(({ signal }, i) => watch(bed.lock.lock({ lease: leaseOf(i), signal })));
  await until("the first one listens", () => bed.proxy.count(script("acquire", bed.name)) >= 2);
  await bed.redis.ping();
  bed.proxy.clear();
  const dispose = async (): Promise<void> => {
    await Promise.all([bed.dispose(), other.dispose()]);
  };
  return { bed, writer, readers: calls, controllers, [Symbol.asyncDispose]: dispose };
}

/** The lock's hash has exactly these holds, each with its own lease and counted once. */
async function expectEach(bed: Bed, holds: readonly (readonly [Hold, number])[]): Promise<void> {
  const keys: Record<string, KeyState> = await bed.keys();
  const counts = Object.fromEntries(holds.map(([{ ownerId }]) => [ownerId, "1"]));
  expect(keys[bed.name]?.value).toEqual({ mode: "read", ...counts });
  for (const [{ ownerId }, lease] of holds) {
    const ttl = keys[keysOf.hold(bed.name, ownerId, 1)]?.ttl ?? 0;
    expect(ttl).toBeLessThanOrEqual(lease);
    expect(ttl).toBeGreaterThan(lease - 10_000);
  }
  expect(Object.keys(keys).filter((key) => key.includes("rwlock_timeout"))).toHaveLength(holds.length);
}

test("250 readers are let in by few scripts, each with its own lease", async () => {
  await using wait = await lineUp();
  const { bed, writer, readers } = wait;
  await writer.unlock();
  const holds = await Promise.all(readers.map((reader) => soon(reader)));
  expect(bed.proxy.count(script("acquire"))).toBeLessThanOrEqual(MOST_SCRIPTS);
  expect(new Set(holds.map(({ ownerId }) => ownerId)).size).toBe(READERS);
  await expectEach(
    bed,
    holds.map((hold, i) => [hold, leaseOf(i)]),
  );
  const longest = Math.max(...holds.map(({ remaining }) => remaining));
  expect(longest).toBeLessThanOrEqual((await bed.keys())[bed.name]?.ttl ?? 0);
  await Promise.all(holds.map((hold) => hold.unlock()));
  await expectNothingLeft(bed);
  expect(bed.troubles).toEqual([]);
});

test("readers aborted during their try leave nothing, and the other readers are let in", async () => {
  await using wait = await lineUp();
  const { bed, writer, readers, controllers } = wait;
  const gone = [0, 7, 120, 249];
  let tries = 0;
  const off = bed.proxy.onCommand(({ command }) => {
    // The second try carries the readers that the first grant has told.
    if (!script("acquire")(command) || ++tries !== 2) return;
    for (const i of gone) controllers[i]?.abort("enough");
  });
  await writer.unlock();
  await until("all calls are over", () => readers.every(({ state }) => state !== "pending"));
  off();
  const kept = readers.flatMap(({ value }, i) => (value ? [[value, leaseOf(i)] as const] : []));
  // The first reader of the queue has the lock before that, so it may keep it.
  expect(kept.length).toBeGreaterThanOrEqual(READERS - gone.length);
  expect(kept.length).toBeLessThan(READERS);
  for (const i of gone) if (!readers[i]?.value) expect(readers[i]?.error).toBe("enough");
  await until("what was let in for nothing is given back", async () => {
    const value = (await bed.keys())[bed.name]?.value ?? {};
    return Object.keys(value).length === kept.length + 1;
  });
  await expectEach(bed, kept);
  for (const [hold] of kept) await hold.unlock();
  await expectNothingLeftSoon(bed);
  expect(bed.troubles).toEqual([]);
});

test("a reader that is aborted in the same tick as its call leaves nothing, and those beside it are let in", async () => {
  await using bed = await stage.bed({ kind });
  const controllers = Array.from({ length: 5 }, () => new AbortController());
  const calls = controllers.map(({ signal }, i) => watch(bed.lock.tryLock(0, leaseOf(i), { signal })));
  controllers[2]?.abort("enough");
  await until("all calls are over", () => calls.every(({ state }) => state !== "pending"));
  expect(calls[2]?.error).toBe("enough");
  expect(bed.proxy.count(script("acquire", bed.name))).toBe(1);
  const kept = calls.flatMap(({ value }, i) => (value ? [[value, leaseOf(i)] as const] : []));
  expect(kept).toHaveLength(4);
  await until(
    "it is given back",
    async () => Object.keys((await bed.keys())[bed.name]?.value ?? {}).length === 5,
  );
  await expectEach(bed, kept);
  for (const [hold] of kept) await hold.unlock();
  await expectNothingLeftSoon(bed);
});

test.each([
  ["the reply is lost", "cutReplyOf"],
  ["the request is lost", "dropRequest"],
] as const)("each is counted once when %s", async (_, fault) => {
  await using wait = await lineUp(60);
  const { bed, writer, readers } = wait;
  const struck = bed.proxy[fault](script("acquire"), 2);
  await writer.unlock();
  const holds = await Promise.all(readers.map((reader) => soon(reader)));
  await struck.done;
  await expectEach(
    bed,
    holds.map((hold, i) => [hold, leaseOf(i)]),
  );
  for (const hold of holds) expect(await bed.lock.getHoldCount({ owner: hold })).toBe(1);
  await Promise.all(holds.map((hold) => hold.unlock()));
  await expectNothingLeftSoon(bed);
  expect(bed.troubles).toEqual([]);
});
