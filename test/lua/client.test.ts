/** What clients tell of themselves. */
import { describe, expect, test } from "vitest";
import { clientDescribe, clientEnlist, clientTell } from "../../src/scripts/generated.js";
import { FORBIDDEN, forms, held, later, type States, scored } from "./bench.js";
import { useBench } from "./counts.js";

const CLIENT = "holdfast_client:{a}";
const INDEX = "holdfast_clients";
const bench = useBench();

const fields = { label: "mail", host: "h1", pid: "17", since: "1700000000000", holds: "[1]", waits: "[2]" };
const told = (ttl: number): States => ({ [CLIENT]: held(fields, ttl) });
const index = (members: Parameters<typeof scored>[0], ttl: number): States => ({
  [INDEX]: scored(members, ttl),
});
const [form = "legacy"] = forms(clientTell);

const calls = {
  "client/tell": (ttl: number, redis = bench().redis) =>
    bench().runner(clientTell, form, redis)({ client: CLIENT, index: INDEX }, { id: "a", ttl, ...fields }),
  "client/describe": (ttl: number, redis = bench().redis) =>
    bench().runner(clientDescribe, form, redis)({ client: CLIENT }, { ttl, ...fields }),
  "client/enlist": (ttl: number, redis = bench().redis) =>
    bench().runner(clientEnlist, form, redis)({ index: INDEX }, { id: "a", ttl }),
};

describe.each(["client/tell", "client/describe"] as const)("%s", (name) => {
  test("what a client tells takes the place of what it told, and lasts for its time", async () => {
    await bench().put({ [CLIENT]: held({ label: "old", more: "x" }, 90_000) });
    for (const ttl of [60_000, 30_000]) {
      expect(await calls[name](ttl)).toBe(1);
      const enlisted = name === "client/tell" ? index({ a: later(ttl) }, 60_000) : {};
      await bench().expect({ ...told(ttl), ...enlisted });
    }
  });

  test.each(["del", "hset", "pexpire"])("who may not %s is told so", async (command) => {
    await bench().put({});
    await expect(calls[name](60_000, await bench().without(command))).rejects.toThrow(FORBIDDEN);
  });
});

describe.each(["client/tell", "client/enlist"] as const)("%s", (name) => {
  const beside = (ttl: number) => (name === "client/tell" ? told(ttl) : {});

  test("a client stands in the index for its time; those whose time is over go", async () => {
    await bench().put(index({ b: 90_000, c: -1 }, 90_000));
    expect(await calls[name](60_000)).toBe(1);
    await bench().expect({ ...beside(60_000), ...index({ a: later(60_000), b: 90_000 }, 90_000) });
  });

  test("the index lasts as long as the last of its clients", async () => {
    await bench().put(index({ b: 9_000 }, 9_000));
    expect(await calls[name](60_000)).toBe(1);
    expect(await calls[name](30_000)).toBe(1);
    await bench().expect({ ...beside(30_000), ...index({ a: later(30_000), b: 9_000 }, 60_000) });
  });

  test.each(["time", "zremrangebyscore", "zadd", "pttl"])("who may not %s is told so", async (command) => {
    await bench().put({});
    await expect(calls[name](60_000, await bench().without(command))).rejects.toThrow(FORBIDDEN);
  });
});
