/**
 * Calls end without an answer here: the server is killed, stopped or restarted, or their request is on its way. The
 * caller learns of it in time. Nothing stays on the server once it answers again.
 */
import { describe, expect, test } from "vitest";
import { type RedisServer, SLACK, until } from "../support/index.js";
import { failsSoon, manyAtOnce, Stage, script, useStage, watch } from "./harness.js";
import { expectNothingLeft, expectNothingLeftSoon, untilMarked } from "./remains.js";

manyAtOnce();
const stage = await useStage("standalone", "cluster");

const away: [string, (server: RedisServer) => unknown, (server: RedisServer) => unknown][] = [
  ["killed", (server) => server.kill(), (server) => server.restart()],
  ["stopped by SIGSTOP", (server) => server.pause(), (server) => server.resume()],
];

describe.concurrent("a server that goes away", () => {
  test.each(away)(
    "%s: tryLock(200) rejects UNAVAILABLE in time and leaves nothing once the server is back [F7]",
    async (_, take, giveBack) => {
      await using own = await Stage.start(["standalone"]);
      await using bed = await own.bed();
      await take(own.server);
      const call = watch(bed.lock.tryLock(200));
      expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
      expect(call.took).toBeGreaterThan(150);
      expect(call.took).toBeLessThan(200 + SLACK);
      await giveBack(own.server);
      await expectNothingLeftSoon(bed);
    },
  );

  test("restarts while calls are on their way: each counts once, and all is given back", async () => {
    await using own = await Stage.start(["standalone"], ["--appendonly", "yes", "--appendfsync", "always"]);
    await using bed = await own.bed();
    const names = Array.from({ length: 30 }, (_, i) => `${bed.name}-${i}`);
    const held = names.slice(0, 10).map((name) => bed.make(name));
    const before = await Promise.all(held.map((lock) => lock.lock()));
    const calls = [
      ...before.map((hold) => watch(hold.unlock())),
      ...names.slice(10).map((name) => watch(bed.make(name).run(() => {}))),
    ];
    await own.server.kill();
    await own.server.restart();
    await until("all calls are over", () => calls.every(({ state }) => state !== "pending"));
    expect(calls.map(({ error }) => error)).toEqual(calls.map(() => undefined));
    await expectNothingLeftSoon(bed);
    expect(bed.troubles).toEqual([]);
  });
});

// The connection is reset while the request is on its way; the old bytes reach the server after the call was given up.
test.concurrent.each(["standalone", "cluster"] as const)(
  "%s: a late try that arrives after its call was given up and undone gets nothing [F6]",
  async (topology) => {
    await using bed = await stage.bed({ topology });
    const call = watch(bed.lock.tryLock(200));
    const ghost = bed.proxy.holdRequest(script("take", bed.name));
    await ghost.fired;
    bed.proxy.refuse();
    expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    expect(call.took).toBeLessThan(200 + SLACK);
    bed.proxy.restore();
    await until("its clean-up was sent", () => bed.proxy.count(script("end", bed.name)) > 0);
    await bed.own.ping();
    await untilMarked(bed);
    await ghost.deliver();
    await expectNothingLeft(bed);
    await expectNothingLeftSoon(bed);
  },
);
