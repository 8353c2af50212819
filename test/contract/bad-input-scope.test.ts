/** Contract section 6: wrong arguments of the calls of an open client are refused before anything is sent. */
import { describe, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { connectionLike, countCommands, forFile, startRedis } from "../support/index.js";
import { as, type Refusal, refused, rejects, sendNothing, warmUp } from "./helpers.js";

const server = await forFile(startRedis());
const client = await forFile(new LockClient(connectionLike(server.connect())));
await warmUp(client.getLock("a"));
const counter = await forFile(countCommands(server));
sendNothing(() => counter);

test.each([
  ["absent", undefined],
  ["null", null],
  ["a promise", Promise.resolve()],
  ["options instead", { lease: 1000 }],
  ["a string", "fn"],
])("fn of a scope: %s", async (_, fn) => {
  await refused(() => client.scope(as(fn)), TypeError);
  await refused(() => client.newOwner().scope(as(fn)), TypeError);
});

test.each([
  ["client.scope", () => client.scope(as(null))],
  ["client.close", () => client.close(as(null))],
])("%s rejects, it does not throw", (_, call) => rejects(call));

describe("the arguments of close leave the client open", () => {
  const bad: readonly [title: string, options: unknown, type: Refusal][] = [
    ["timeout negative", { timeout: -1 }, RangeError],
    ["timeout NaN", { timeout: Number.NaN }, RangeError],
    ["timeout a string", { timeout: "5" }, TypeError],
    ["timeout null", { timeout: null }, TypeError],
    ["timeout a BigInt", { timeout: 5n }, TypeError],
    ["an unknown option", { grace: 5 }, TypeError],
    ["null", null, TypeError],
    ["a number", 5, TypeError],
  ];
  test.each(bad)("%s", async (_, options, type) => {
    await refused(() => client.close(as(options)), type);
    await client.scope(() => undefined); // the client is still open, and the scope sends nothing
  });
});
