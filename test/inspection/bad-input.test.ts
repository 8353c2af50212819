/** Wrong arguments of `inspect` and `list` are refused before anything is sent. */
import { describe, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { type Bad, NAMES } from "../contract/bad-values.js";
import { as, refused, sendNothing } from "../contract/helpers.js";
import { countCommands, forFile, startRedis } from "../support/index.js";

const server = await forFile(startRedis());
const client = await forFile(new LockClient(server.connect()));
await client.ready();
const counter = await forFile(countCommands(server));
sendNothing(() => counter);

test.each(NAMES)("inspect: a name that is %s", (_, name, type) =>
  refused(() => client.inspect(as(name)), type),
);

describe("list", () => {
  const all = async (options: unknown): Promise<unknown[]> => {
    const found: unknown[] = [];
    for await (const info of client.list(as(options))) found.push(info);
    return found;
  };

  test.each<Bad>([
    ["null", null, TypeError],
    ["a number", 500, TypeError],
    ["a string", "job:*", TypeError],
    ["an array", [], TypeError],
    ["a function", () => {}, TypeError],
    ["an unknown option", { timeout: 5 }, TypeError],
    ["an unknown option that is undefined", { timeout: undefined }, TypeError],
    ["match: a number", { match: 5 }, TypeError],
    ["match: null", { match: null }, TypeError],
    ["count: 0", { count: 0 }, RangeError],
    ["count: -1", { count: -1 }, RangeError],
    ["count: 1.5", { count: 1.5 }, RangeError],
    ["count: a string", { count: "10" }, TypeError],
    ["count: null", { count: null }, TypeError],
  ])("%s", (_, options, type) => refused(() => all(options), type));
});
