/** `run` of a semaphore: takes permits, runs, gives them back, whatever happens. */
import { describe, expect, test, vi } from "vitest";
import { atLast, failsSoon, manyAtOnce, pause, Stage, soon, useStage, watch } from "../../faults/harness.js";
import { SLACK, until } from "../../support/index.js";
import { NEVER, Site } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

const mine = (): never => {
  throw new Error("mine");
};

describe.concurrent("run", () => {
  test("holds as many permits as it is told while fn runs, and gives what fn gives", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(5);
    expect(
      await site.semaphore().run(async () => {
        expect(await site.value()).toBe("4");
        return "one";
      }),
    ).toBe("one");
    expect(await site.semaphore().run(() => site.value(), { permits: 3 })).toBe("2");
    await site.expectOnly("5");
  });

  test("does not re-enter: a run inside a run takes another permit", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(2);
    const inside = await site.semaphore().run(() => site.semaphore().run(() => site.value()));
    expect(inside).toBe("0");
    await site.expectOnly("2");
  });

  test("at most as many run at a time as there are permits", async () => {
    await using site = await Site.of(stage, {}, {});
    await site.semaphore().trySetPermits(3);
    let inside = 0;
    let most = 0;
    const visit = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await until("all permits are taken", () => most >= 3);
      await pause(15); // time for a run that should not enter
      inside--;
    };
    await Promise.all(Array.from({ length: 40 }, (_, i) => site.semaphore(i % 2).run(visit)));
    expect(most).toBe(3);
    await site.expectOnly("3");
  });

  test.each([
    ["throws", mine],
    ["rejects", async () => mine()],
  ])("fn that %s: its error, and the permits are back", async (_, fn: () => Promise<never>) => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(2);
    await expect(site.semaphore().run(fn, { permits: 2 })).rejects.toThrow("mine");
    await site.expectOnly("2");
  });

  test("no permit within wait: WAIT_TIMEOUT, and fn is not called", async () => {
    await using site = await Site.of(stage, { pollCap: NEVER });
    await site.semaphore().trySetPermits(0);
    const fn = vi.fn();
    const call = watch(site.semaphore().run(fn, { wait: 2_000 }));
    const error = await failsSoon(call);
    const about = { code: "WAIT_TIMEOUT", lockName: site.name };
    expect(error).toMatchObject({ ...about, waited: expect.toSatisfy((ms) => ms > 1_990) });
    expect(call.took).toBeLessThan(2_000 + SLACK);
    await expect(site.semaphore().run(fn, { wait: 0 })).rejects.toMatchObject(about);
    expect(fn).not.toHaveBeenCalled();
    await site.expectOnly("0");
  });

  test("a signal ends the wait, and nothing else", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(1);
    const controller = new AbortController();
    const { running, leave } = await site.entered({ signal: controller.signal });
    controller.abort("enough");
    leave("done");
    await soon(running);
    await site.expectOnly("1");
  });

  test.each<[string, () => string, (running: Promise<string>) => Promise<unknown>]>([
    ["run gives what fn gives", () => "done", (running) => expect(running).resolves.toBe("done")],
    ["run fails with fn's error", mine, (running) => expect(running).rejects.toThrow("mine")],
  ])("a release without an answer: %s, `error` is told, and the release goes on", async (_, fn, ends) => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, { commandTimeout: 2_000 });
    await atLast(() => site.semaphore().trySetPermits(3));
    const events = site.events();
    const work = (): string => {
      own.server.pause();
      return fn();
    };
    await ends(site.semaphore().run(work, { permits: 2 }));
    expect(events.of("error")).toMatchObject([
      { lockName: site.name, kind: "semaphore", cause: { code: "UNAVAILABLE" } },
    ]);
    own.server.resume();
    await site.untilValue("3");
    await site.expectOnly("3");
  });

  test("a release that Redis refuses is told by `error`; the data is left alone", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(1);
    const events = site.events();
    const call = site.semaphore().run(async () => {
      await site.redis.del(site.name);
      await site.redis.rpush(site.name, "theirs");
      return "done";
    });
    await expect(call).resolves.toBe("done");
    expect(events.of("error")).toMatchObject([{ lockName: site.name, cause: { code: "WRONG_DATA" } }]);
    expect(await site.redis.lrange(site.name, 0, -1)).toEqual(["theirs"]);
  });
});
