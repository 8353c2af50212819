/**
 * A hand-over inside one process whose command gets no answer: what the giver is told, and that a successor which ends
 * meanwhile leaves nothing on the server, wherever the command was.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { until } from "../support/index.js";
import {
  atLast,
  type Bed,
  failsSoon,
  manyAtOnce,
  NEVER,
  script,
  soon,
  turn,
  useStage,
  watch,
} from "./harness.js";
import { expectHolder, type Line, lineUp, needCounted, PASS, PASSED, parked } from "./passing.js";
import { expectNothingLeft, expectNothingLeftSoon, ttlOf, untilFree, untilMarked } from "./remains.js";
import { byTopology } from "./ways.js";

/** A delay that ends only by `restore`. */
const FOREVER = 60_000;
const IMPATIENT = { commandTimeout: 3_000, pollCap: 5_000 };

manyAtOnce();
const stage = await useStage("standalone", "cluster");

/** Where the command is meanwhile. */
const places: Record<string, (bed: Bed) => Promise<(line: Line) => Promise<void>>> = {
  "has not reached Redis": async (bed) => {
    bed.proxy.stall();
    return async () => {
      await turn();
      expect((await bed.keys())[bed.name]).toBeDefined();
    };
  },
  "was executed but not answered": async (bed) => {
    bed.proxy.delayReplies(FOREVER, PASS);
    return async ({ giver }) => {
      await until("it was executed", async () => {
        const fields = Object.keys(((await bed.keys())[bed.name]?.value ?? {}) as object);
        return fields.length > 0 && !fields.some((field) => field.startsWith(giver.ownerId));
      });
    };
  },
};

describe.concurrent.each(byTopology(PASSED))("%s, %s", (_kind, topology, kind) => {
  beforeEach((context) => needCounted(topology, context));

  describe.each(Object.entries(places))("while the command %s", (_place, stop) => {
    test("the client is closed: nothing is left on the server", async () => {
      await using bed = await stage.bed({ kind, topology });
      const line = await lineUp(bed, { lease: 40_000 });
      const arrived = await stop(bed);
      const unlocked = watch(line.giver.unlock());
      await arrived(line);
      const closing = bed.client.close({ timeout: 0 });
      await turn();
      for (const { error } of [line.successor, line.next])
        expect(error).toMatchObject({ code: "CLIENT_CLOSED" });
      bed.proxy.restore();
      await closing;
      await until("unlock has an outcome", () => unlocked.state !== "pending");
      await bed.redis.ping();
      await untilFree(bed);
      await expectNothingLeft(bed);
    });

    test("no answer comes in time: unlock rejects UNAVAILABLE and goes on, the successor waits and gets the lock [B21]", async () => {
      await using bed = await stage.bed({ kind, topology, client: IMPATIENT });
      const { giver, successor, next } = await lineUp(bed, { lease: 40_000 });
      const arrived = await stop(bed);
      const unlocked = watch(giver.unlock());
      await arrived({ giver, successor, next, controller: new AbortController() });
      expect(await failsSoon(unlocked)).toMatchObject({ code: "UNAVAILABLE" });
      expect([successor.state, next.state]).toEqual(["pending", "pending"]);
      bed.proxy.restore();
      await atLast(() => giver.unlock());
      const hold = await soon(successor);
      expect(next.state).toBe("pending");
      await expectHolder(bed, hold);
      const ttl = await ttlOf(bed);
      expect(hold.remaining).toBeLessThanOrEqual(ttl);
      await atLast(() => hold.unlock());
      const last = await soon(next);
      await atLast(() => last.unlock());
      await expectNothingLeftSoon(bed);
      expect(bed.troubles).toEqual([]);
    });
  });

  test("the successor is aborted at once, and the command arrives late and once more", async () => {
    await using bed = await stage.bed({ kind, topology });
    const line = await lineUp(bed, { lease: 40_000 });
    const late = bed.proxy.holdRequest(PASS);
    const unlocked = watch(line.giver.unlock());
    line.controller.abort("enough");
    await soon(unlocked);
    const last = await soon(line.next);
    await late.deliver();
    await expectHolder(bed, last);
    await last.unlock();
    await expectNothingLeftSoon(bed);
  });
});

test.concurrent.each(PASSED.map((kind) => [kind.name, kind] as const))(
  "%s: a command that arrives behind the clean-up of its successor grants nobody the lock",
  async (_name, kind) => {
    const redis = { maxRetriesPerRequest: 0, retryStrategy: () => 1 };
    await using bed = await stage.bed({ kind, redis, client: { ...IMPATIENT, pollCap: NEVER } });
    const giver = await atLast(() => bed.lock.lock());
    bed.proxy.clear();
    const controller = new AbortController();
    const successor = watch(bed.lock.lock({ signal: controller.signal }));
    await parked(bed);
    const late = bed.proxy.holdRequest(PASS);
    // Each of these commands is lost with its connection. If the clean-up went with them, it would be lost each time
    // too.
    const releases = bed.proxy.dropRequest((command) => PASS(command) || script("release")(command), 10_000);
    const unlocked = watch(giver.unlock());
    await late.fired;
    await until("it is sent again", () => releases.hits > 2);
    controller.abort("enough");
    await untilMarked(bed);
    await expectHolder(bed, giver);
    await late.deliver();
    expect((await bed.keys())[bed.name]).toBeUndefined();
    releases.cancel();
    await until("unlock is over", () => unlocked.state !== "pending");
    await atLast(() => giver.unlock());
    expect(successor.error).toBe("enough");
    await expectNothingLeftSoon(bed);
  },
);
