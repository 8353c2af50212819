/** Decorated methods, compiled with standard and with experimental decorators. */
import { readFile } from "node:fs/promises";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { type LockedKind, locked } from "../../src/entries/decorator.js";
import { LockClient } from "../../src/index.js";
import { forFile, startRedis, UNHURRIED } from "../support/index.js";
import type { shopOf } from "./decorated.js";

const server = await forFile(startRedis());
const client = await forFile(new LockClient(server.connect(), UNHURRIED));

async function compiled(experimentalDecorators: boolean): Promise<{ shopOf: typeof shopOf }> {
  const source = await readFile(new URL("decorated.ts", import.meta.url), "utf8");
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, experimentalDecorators },
  });
  return import(`data:text/javascript,${encodeURIComponent(outputText)}`);
}

describe.each([
  { way: "standard", experimental: false },
  { way: "experimental", experimental: true },
])("by a $way decorator", ({ experimental }) => {
  test("parallel calls of one lock take turns, and of another do not wait; calls inside re-enter", async () => {
    const { shopOf } = await compiled(experimental);
    let inside = 0;
    let most = 0;
    const shop = shopOf(locked, client, async () => {
      most = Math.max(most, ++inside);
      await client.getLock("apart").isLocked();
      inside -= 1;
      return null;
    });
    await Promise.all([shop.sell("a", 2), shop.sell("a", 1), shop.sellTwice("a")]);
    expect(shop.sold).toEqual(["a", "a", "a", "a", "a"]);
    expect(most).toBe(1);
    expect(await client.getLock("stock:a").isLocked()).toBe(false);
  });

  test("another holder is heeded, by the side of a read-write lock too, and errors are those of the lock or the method", async () => {
    const { shopOf } = await compiled(experimental);
    const shop = shopOf(locked, client, async () => null);
    const writer = await client.getReadWriteLock("count").writeLock().lock();
    await expect(shop.count()).rejects.toMatchObject({ code: "WAIT_TIMEOUT", lockName: "count" });
    await writer.unlock();
    const reader = await client.getReadWriteLock("count").readLock().lock();
    expect(await shop.count()).toBe(0);
    await reader.unlock();
    await expect(shop.fail()).rejects.toThrow("the method's own");
    expect(await client.getLock("fail").isLocked()).toBe(false);
    expect([shop.sell.name, shop.sell.length]).toEqual(["sell", 2]);
  });
});

test.each(["lock", "fair", "fenced", "read", "write"] satisfies LockedKind[])("kind %s", async (kind) => {
  const lock = {
    lock: client.getLock(kind),
    fair: client.getFairLock(kind),
    fenced: client.getFencedLock(kind),
    read: client.getReadWriteLock(kind).readLock(),
    write: client.getReadWriteLock(kind).writeLock(),
  }[kind];
  const object = { method: () => lock.isLocked() };
  const decorated = locked(client, kind, { kind })(object, "method", { value: object.method });
  expect(await decorated.value?.call(object)).toBe(true);
  expect(await lock.isLocked()).toBe(false);
});

test.each([
  [null, "null"],
  [5, "5"],
  [["wait"], "an array"],
])("options that are no object are refused at once: %j [B212]", (options, told) => {
  expect(() => locked(client, "a", options as object)).toThrow(
    new TypeError(`locked: options must be an object, not ${told}`),
  );
});

test("a target that is no method, an unknown option and a missing client are refused", async () => {
  expect(() => locked(client, "a", { kind: "spin" as LockedKind })).toThrow(TypeError);
  const decorate = locked(client, "a") as (...args: unknown[]) => unknown;
  expect(() => decorate(undefined, { kind: "field", name: "a" })).toThrow(/a is no method/);
  expect(() => decorate({}, "a")).toThrow(/a is no method/);
  const { value } = locked(client, "a", { waits: 5 } as object)({}, "a", { value: async () => {} });
  await expect(value?.()).rejects.toThrow(/unknown option "waits"/);
  for (const missing of [undefined, () => undefined, null]) {
    const late = locked(missing as never, "a")({}, "sell", { value: async () => {} });
    await expect(late.value?.()).rejects.toThrow(/^locked: sell needs a LockClient, not (undefined|null)$/);
  }
});
