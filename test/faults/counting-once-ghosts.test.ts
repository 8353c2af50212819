/**
 * Requests that arrive late. The connection is reset while the request is on its way. Then ioredis sends it again, or
 * the call is given up; only after that the old bytes reach the server. They must take no lock, and change no count.
 */
import { describe, expect, test } from "vitest";
import { type HeldRequest, SLACK, STEADY, until } from "../support/index.js";
import {
  type Bed,
  failsSoon,
  manyAtOnce,
  type ScriptName,
  script,
  turn,
  useStage,
  watch,
} from "./harness.js";
import {
  expectHeld,
  expectHeldBesidesMarkers,
  expectNothingLeft,
  expectNothingLeftSoon,
  ttlOf,
  untilMarked,
} from "./remains.js";
import { byTopology } from "./ways.js";

manyAtOnce();
const stage = await useStage("standalone", "cluster");

function hold(bed: Bed, operation: ScriptName): HeldRequest {
  return bed.proxy.holdRequest(script(operation, bed.name));
}

/** Withholds the call's request, and refuses the client any other connection to the server. */
async function stuck(bed: Bed, operation: ScriptName): Promise<HeldRequest> {
  const ghost = hold(bed, operation);
  await ghost.fired;
  bed.proxy.refuse();
  return ghost;
}

describe.concurrent.each(byTopology())("%s, %s: a late acquire", (_kind, topology, kind) => {
  test("that arrives after its call was given up and undone gets nothing [F6]", async () => {
    await using bed = await stage.bed({ kind, topology });
    const call = watch(bed.lock.tryLock(200));
    const ghost = await stuck(bed, "acquire");
    expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    expect(call.took).toBeLessThan(200 + SLACK);
    bed.proxy.restore();
    await until("its clean-up was sent", () => bed.proxy.count(script("undo", bed.name)) > 0);
    await bed.redis.ping();
    await untilMarked(bed);
    await ghost.deliver();
    await expectNothingLeft(bed);
    await expectNothingLeftSoon(bed);
  });

  test("that arrives before the clean-up of its call is undone by it", async () => {
    await using bed = await stage.bed({ kind, topology });
    const call = watch(bed.lock.tryLock(200));
    const ghost = await stuck(bed, "acquire");
    await until("the call is over", () => call.state !== "pending");
    await ghost.deliver();
    expect(await ttlOf(bed)).toBeGreaterThan(0); // a lock without an owner, for now
    bed.proxy.restore();
    await expectNothingLeftSoon(bed);
  });

  test("that arrives after it was sent again, granted and given back gets nothing", async () => {
    await using bed = await stage.bed({ kind, topology });
    const ghost = hold(bed, "acquire");
    const granted = await bed.lock.lock();
    expect(ghost.hits).toBe(1);
    await granted.unlock();
    await ghost.deliver();
    await expectNothingLeft(bed, 20_000);
    await expect(bed.lock.tryLock()).resolves.not.toBeNull();
  });

  test("that arrives after it was sent again, granted, lost and given back gets nothing [B59]", async () => {
    await using bed = await stage.bed({ kind, topology });
    const ghost = hold(bed, "acquire");
    const granted = await bed.lock.lock();
    expect(ghost.hits).toBe(1);
    for (const key of Object.keys(await bed.keys()))
      await bed.observer.eval("return redis.call('DEL', KEYS[1])", 1, key);
    await expect(granted.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await untilMarked(bed);
    await ghost.deliver();
    await expectNothingLeft(bed, 20_000);
    await expect(bed.lock.tryLock()).resolves.not.toBeNull();
  });

  test("that arrives while its second sending holds the lock changes nothing", async () => {
    await using bed = await stage.bed({ kind, topology });
    const ghost = hold(bed, "acquire");
    const granted = await bed.lock.lock();
    await ghost.deliver();
    await expectHeld(bed, granted.ownerId, 1);
    await granted.unlock();
    await expectNothingLeft(bed, 20_000);
  });

  test("of a call that was aborted gets nothing, though the client was closed at once", async () => {
    await using bed = await stage.bed({ kind, topology });
    const controller = new AbortController();
    const call = watch(bed.lock.lock({ signal: controller.signal }));
    const ghost = await stuck(bed, "acquire");
    controller.abort(new Error("enough"));
    await turn();
    expect(call.error).toBe(controller.signal.reason);
    bed.proxy.restore();
    await bed.client.close({ timeout: 0 });
    await bed.redis.ping();
    await ghost.deliver();
    await expectNothingLeft(bed);
  });

  test("that was refused when it was sent again gets nothing after the call has returned null", async () => {
    await using bed = await stage.bed({ kind, topology });
    await using other = await stage.bed({ kind, topology });
    const theirs = await other.rival(bed.name).lock();
    const ghost = hold(bed, "acquire");
    expect(await bed.lock.tryLock()).toBeNull();
    expect(ghost.hits).toBe(1);
    await untilMarked(bed);
    await theirs.unlock();
    await ghost.deliver();
    await expectNothingLeft(bed);
  });
});

describe.concurrent.each(byTopology())("%s, %s: a late nested acquire", (_kind, topology, kind) => {
  test("that was sent again and granted counts once, also after it was given back", async () => {
    await using bed = await stage.bed({ kind, topology });
    await bed.client.scope(async () => {
      const outer = await bed.lock.lock();
      const ghost = hold(bed, "reenter");
      await bed.lock.lock();
      await bed.lock.unlock();
      await ghost.deliver();
      await expectHeldBesidesMarkers(bed, outer.ownerId, 1);
      await bed.lock.unlock();
    });
    await expectNothingLeft(bed);
  });

  test("that arrives after all was given back gets nothing", async () => {
    await using bed = await stage.bed({ kind, topology });
    const ghost = hold(bed, "reenter");
    await bed.client.scope(async () => {
      await bed.lock.lock();
      await bed.lock.lock();
      await bed.lock.unlock();
      await bed.lock.unlock();
    });
    await ghost.deliver();
    await expectNothingLeft(bed);
  });

  test("that was given up is undone alone: outer hold, count and later nested calls are unaffected", async () => {
    await using bed = await stage.bed({ kind, topology, client: { commandTimeout: 3_500 } });
    await bed.client.scope(async () => {
      const outer = await bed.lock.lock();
      const call = watch(bed.lock.lock());
      const ghost = await stuck(bed, "reenter");
      expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
      bed.proxy.restore();
      await untilMarked(bed);
      await bed.lock.lock();
      await ghost.deliver();
      expect(outer.isHeld).toBe(true);
      await expectHeldBesidesMarkers(bed, outer.ownerId, 2);
      await bed.lock.unlock();
      await expectHeldBesidesMarkers(bed, outer.ownerId, 1);
      await bed.lock.unlock();
    });
    await expectNothingLeft(bed);
    expect(bed.troubles).toEqual([]);
  });

  test("that arrives before its clean-up is undone by it, and by nothing else", async () => {
    await using bed = await stage.bed({ kind, topology, client: { commandTimeout: 3_500 } });
    await bed.client.scope(async () => {
      const outer = await bed.lock.lock();
      const call = watch(bed.lock.lock());
      const ghost = await stuck(bed, "reenter");
      await until("the call is over", () => call.state !== "pending");
      await ghost.deliver();
      bed.proxy.restore();
      await until("its count is undone", async () => {
        return (await bed.lock.getHoldCount()) === 1;
      });
      await expectHeldBesidesMarkers(bed, outer.ownerId, 1);
      expect(outer.isHeld).toBe(true);
      await bed.lock.unlock();
    });
    await expectNothingLeft(bed);
  });
});

describe.concurrent.each(byTopology())(
  "%s, %s: a late release, extend, renewal or clean-up",
  (_kind, topology, kind) => {
    test("partial release: takes nothing from a hold that was nested since", async () => {
      await using bed = await stage.bed({ kind, topology });
      await bed.client.scope(async () => {
        const outer = await bed.lock.lock();
        await bed.lock.lock();
        const ghost = hold(bed, "release");
        await bed.lock.unlock();
        const nested = await bed.lock.lock({ lease: 90_000 });
        await ghost.deliver();
        await expectHeldBesidesMarkers(bed, outer.ownerId, 2);
        expect(await ttlOf(bed)).toBeGreaterThan(nested.remaining);
        await bed.lock.unlock();
        await bed.lock.unlock();
      });
      await expectNothingLeft(bed);
    });

    test("extend: never shortens what a later extend has set", async () => {
      await using bed = await stage.bed({ kind, topology });
      const held = await bed.lock.lock({ lease: 20_000 });
      const ghost = hold(bed, "extend");
      await held.extend(15_000);
      await held.extend(60_000);
      await ghost.deliver();
      expect(await ttlOf(bed)).toBeGreaterThan(held.remaining);
      await held.unlock();
      await expectNothingLeft(bed);
    });

    test("full release: never frees a later hold of the same owner", async () => {
      await using bed = await stage.bed({ kind, topology });
      const ghost = hold(bed, "release");
      await bed.client.scope(async () => {
        await bed.lock.lock();
        await bed.lock.unlock();
        const later = await bed.lock.lock();
        await ghost.deliver();
        await expectHeldBesidesMarkers(bed, later.ownerId, 1);
        await bed.lock.unlock();
      });
      await expectNothingLeft(bed);
    });

    test("extend: never brings a lock back that was given back since", async () => {
      await using bed = await stage.bed({ kind, topology });
      const granted = await bed.lock.lock({ lease: 10_000 });
      const ghost = hold(bed, "extend");
      await granted.extend(60_000);
      await granted.unlock();
      await ghost.deliver();
      await expectNothingLeft(bed, 20_000);
    });

    test("renewal: never brings a lock back, and never touches another's", async () => {
      await using bed = await stage.bed({ kind, topology, client: { watchdogTimeout: STEADY } });
      await using other = await stage.bed({ kind, topology });
      const ghost = hold(bed, "renew");
      const granted = await bed.lock.lock();
      await ghost.fired;
      await granted.unlock();
      const theirs = await other.rival(bed.name).lock({ lease: 30_000 });
      const before = (await bed.keys())[bed.name];
      await ghost.deliver();
      const after = (await bed.keys())[bed.name];
      expect(after?.value).toEqual(before?.value);
      expect(after?.ttl).toBeLessThanOrEqual(before?.ttl ?? 0);
      await theirs.unlock();
      await expectNothingLeft(bed, 20_000);
    });

    test("clean-up of a nested call: takes nothing from a hold that was nested since", async () => {
      await using bed = await stage.bed({ kind, topology, client: { commandTimeout: 3_500 } });
      await bed.client.scope(async () => {
        const outer = await bed.lock.lock({ lease: 20_000 });
        const call = watch(bed.lock.lock({ lease: 20_000 }));
        const nested = await stuck(bed, "reenter");
        await until("the call is over", () => call.state !== "pending");
        const ghost = hold(bed, "undo");
        bed.proxy.restore();
        await ghost.fired;
        await untilMarked(bed); // the undo was sent again
        const inner = await bed.lock.lock({ lease: 60_000 });
        await ghost.deliver();
        await nested.deliver();
        await expectHeldBesidesMarkers(bed, outer.ownerId, 2);
        expect(await ttlOf(bed)).toBeGreaterThan(inner.remaining - 1_000);
        await inner.unlock();
        await outer.unlock();
      });
      await expectNothingLeft(bed);
    });
  },
);
