/** Decorated methods, compiled with standard and with experimental decorators, and what the compiler says of them. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { type LockedKind, locked } from "../../src/entries/decorator.js";
import { LockClient } from "../../src/index.js";
import { forFile, PATIENCE, startRedis, UNHURRIED } from "../support/index.js";
import type { shopOf } from "./decorated.js";

const server = await forFile(startRedis());
const client = await forFile(new LockClient(server.connect(), UNHURRIED));
const TYPES = fileURLToPath(new URL("decorated-types.ts", import.meta.url));

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2022.d.ts", "lib.esnext.disposable.d.ts"],
  module: ts.ModuleKind.NodeNext,
  types: ["node"],
  strict: true,
  skipLibCheck: true,
  noEmit: true,
  experimentalDecorators: true,
};

async function compiled(experimentalDecorators: boolean): Promise<{ shopOf: typeof shopOf }> {
  const source = await readFile(new URL("decorated.ts", import.meta.url), "utf8");
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, experimentalDecorators },
  });
  return import(`data:text/javascript,${encodeURIComponent(outputText)}`);
}

describe.each([
  { way: "standard", experimentalDecorators: false },
  { way: "experimental", experimentalDecorators: true },
])("by a $way decorator", ({ experimentalDecorators }) => {
  test("parallel calls of one lock take turns, and calls inside re-enter", async () => {
    const { shopOf } = await compiled(experimentalDecorators);
    let inside = 0;
    const shop = shopOf(locked, client, async () => {
      expect(++inside).toBe(1);
      await client.getLock("apart").isLocked();
      inside -= 1;
      return null;
    });
    await Promise.all([shop.sell("a", 2), shop.sell("a", 1), shop.sellTwice("a")]);
    expect(shop.sold).toEqual(["a", "a", "a", "a", "a"]);
    expect(await client.getLock("stock:a").isLocked()).toBe(false);
  });

  test("another holder is heeded, by the side of a read-write lock too, and errors are those of the lock or the method", async () => {
    const { shopOf } = await compiled(experimentalDecorators);
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

// By the standard decorator `npm run lint` compiles the same file.
test(
  "the compiler lets the function of the name stand above a method if it takes all that the method takes [B229] [B259]",
  () => {
    const program = ts.createProgram([TYPES], OPTIONS);
    const told = program
      .getSemanticDiagnostics(program.getSourceFile(TYPES))
      .map(({ start, messageText }) => [start, ts.flattenDiagnosticMessageText(messageText, "\n")]);
    expect(told).toEqual([]);
  },
  10 * PATIENCE,
);

test.each(["lock", "fair", "fenced", "read", "write"] satisfies LockedKind[])(
  "a method of kind %s runs under that lock",
  async (kind) => {
    const object = { method: async () => (await client.inspect(kind))?.kind };
    const decorated = locked(client, kind, { kind })(object, "method", { value: object.method });
    const shown = { lock: "lock", fair: "lock", fenced: "fenced", read: "readwrite", write: "readwrite" };
    expect(await decorated.value?.call(object)).toBe(shown[kind]);
    expect(await client.inspect(kind)).toBeNull();
  },
);

const decorate = (...args: unknown[]) => (locked(client, "a") as (...given: unknown[]) => unknown)(...args);
const called = (given: unknown, options = {}) =>
  locked(given as LockClient, "a", options)({}, "sell", { value: async () => {} }).value?.();
const noObject = (told: string) => new TypeError(`locked: options must be an object, not ${told}`);
const noClient = /^locked: sell needs a LockClient, not (undefined|null)$/;

test.each<[what: string, call: () => unknown, error: RegExp | Error | typeof TypeError]>([
  ["null as options", () => locked(client, "a", null as never), noObject("null")],
  ["a number as options", () => locked(client, "a", 5 as never), noObject("5")],
  ["an array as options", () => locked(client, "a", ["wait"] as never), noObject("an array")],
  ["an unknown kind", () => locked(client, "a", { kind: "spin" as LockedKind }), TypeError],
  ["a field", () => decorate(undefined, { kind: "field", name: "a" }), /a is no method/],
  ["a target without a method", () => decorate({}, "a"), /a is no method/],
  ["an unknown option", () => called(client, { waits: 5 }), /unknown option "waits"/],
  ["no client", () => called(undefined), noClient],
  ["null as client", () => called(null), noClient],
  ["a function that gives no client", () => called(() => undefined), noClient],
])("%s is refused [B212]", async (_what, call, error) => {
  await expect(async () => call()).rejects.toThrow(error);
});
