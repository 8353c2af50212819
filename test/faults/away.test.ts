/**
 * Calls that end without an answer because the server is killed, stopped or restarted, or has forgotten its scripts. The
 * caller learns of it in time, and nothing stays on the server once it answers again.
 */
import { describe, expect, test } from "vitest";
import { type RedisServer, SLACK, until } from "../support/index.js";
import { failOnUnhandledRejections, manyAtOnce, Stage, script, watch } from "./harness.js";
import { expectHeldBesidesMarkers, expectNothingLeftSoon } from "./remains.js";

manyAtOnce();
failOnUnhandledRejections();

const away: [string, (server: RedisServer) => Promise<void>, (server: RedisServer) => Promise<void>][] = [
  [
    "killed",
    (server) => server.kill(),
    async (server) => {
      await server.restart();
    },
  ],
  ["stopped by SIGSTOP", async (server) => server.pause(), async (server) => server.resume()],
];

describe.concurrent("a lock", () => {
  describe.sequential("a server that goes away", () => {
    test.each(away)(
      "%s: tryLock(200) rejects UNAVAILABLE in time and leaves nothing once the server is back [F7]",
      async (_, take, giveBack) => {
        await using stage = await Stage.start(["standalone"]);
        await using bed = await stage.bed();
        await take(stage.server);
        const call = watch(bed.lock.tryLock(200));
        await until("the call is over", () => call.state !== "pending");
        expect(call.error).toMatchObject({ code: "UNAVAILABLE" });
        expect(call.took).toBeGreaterThan(150);
        expect(call.took).toBeLessThan(200 + SLACK);
        await giveBack(stage.server);
        await expectNothingLeftSoon(bed);
      },
    );

    test("restarts while calls are on their way: each counts once, and all is given back", async () => {
      await using stage = await Stage.start(
        ["standalone"],
        ["--appendonly", "yes", "--appendfsync", "always"],
      );
      await using bed = await stage.bed();
      const names = Array.from({ length: 30 }, (_, i) => `${bed.name}-${i}`);
      const held = names.slice(0, 10).map((name) => bed.make(name));
      const before = await Promise.all(held.map((lock) => lock.lock()));
      const calls = [
        ...before.map((hold) => watch(hold.unlock())),
        ...names.slice(10).map((name) => watch(bed.make(name).run(() => {}))),
      ];
      await stage.server.kill();
      await stage.server.restart();
      await until("all calls are over", () => calls.every(({ state }) => state !== "pending"));
      expect(calls.map(({ error }) => error)).toEqual(calls.map(() => undefined));
      await expectNothingLeftSoon(bed);
      expect(bed.troubles).toEqual([]);
    });
  });
});

describe.concurrent("a server that forgets its scripts [F22]", () => {
  test("a script that the server forgot between two calls is sent again in full, once", async () => {
    await using stage = await Stage.start(["standalone"]);
    await using bed = await stage.bed();
    await (await bed.lock.lock()).unlock();
    await stage.server.call("SCRIPT", "FLUSH");
    bed.proxy.clear();
    const hold = await bed.lock.lock();
    await expectHeldBesidesMarkers(bed, hold.ownerId, 1);
    const sent = bed.proxy.commands.filter(({ command }) => script("take")(command));
    expect(sent.map(({ command }) => command[0])).toEqual(["EVALSHA", "EVAL"]);
    await hold.unlock();
  });
});
