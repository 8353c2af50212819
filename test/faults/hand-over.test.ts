/**
 * A lock goes from hand to hand inside one process, on real connections. The command that gives it on counts once
 * though its reply is lost. It leaves nothing though nobody learns of it in time.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { FencedHold, type Hold } from "../../src/index.js";
import { type Fault, needSharded, until } from "../support/index.js";
import { FENCED, type Kind, PLAIN } from "../support/place/kinds.js";
import {
  atLast,
  type Bed,
  type BedOptions,
  failsSoon,
  manyAtOnce,
  NEVER,
  script,
  soon,
  untilQuiet,
  useStage,
  type Watched,
  watch,
} from "./harness.js";
import { expectHeldBesidesMarkers, expectNothingLeft, expectNothingLeftSoon } from "./remains.js";

const PASS = script("pass");
/** A delay that ends only by `restore`. */
const FOREVER = 60_000;

manyAtOnce();
const stage = await useStage("standalone", "cluster");

interface Line extends AsyncDisposable {
  readonly bed: Bed;
  /** The first that gets the lock, and the unlock that it calls at once. */
  readonly giver: Hold;
  readonly unlocked: Watched<void>;
  /** The calls that wait behind it in the same process. */
  readonly successor: Watched<Hold>;
  readonly next: Watched<Hold>;
}

/**
 * Three calls of one process wait for a lock of another one. When that gives it back, the first call gives it on at once,
 * so that its turn lasts on the slowest machine. `arm` is called just before.
 */
async function handOver<T>(options: BedOptions, arm: (bed: Bed) => T): Promise<Line & { readonly fault: T }> {
  const other = await stage.bed(options);
  const bed = await stage.bed({ ...options, client: { pollCap: NEVER, ...options.client } });
  const theirs = await atLast(() => other.rival(bed.name).lock({ lease: NEVER }));
  bed.proxy.clear();
  const first = bed.lock.lock();
  const unlocked = first.then((hold) => watch(hold.unlock()));
  const successor = watch(bed.lock.lock());
  const next = watch(bed.lock.lock());
  const asked = () => bed.proxy.count(script("take", bed.name));
  await until("the first one has listened and asked again", () => asked() >= 4);
  await untilQuiet(asked, 20);
  const fault = arm(bed);
  await theirs.unlock();
  return {
    bed,
    giver: await first,
    unlocked: await unlocked,
    successor,
    next,
    fault,
    async [Symbol.asyncDispose]() {
      await bed.dispose();
      await other.dispose();
    },
  };
}

const rows: [string, BedOptions & { readonly kind: Kind }][] = [
  ["lock, standalone, ioredis 6", { kind: PLAIN }],
  ["fenced lock, cluster, ioredis 5", { kind: FENCED, topology: "cluster", version: 5 }],
];

describe.concurrent.each(rows)("%s", (_name, options) => {
  beforeEach((context) => needSharded(options.topology === "cluster", context));

  test.each<[string, (bed: Bed) => Fault]>([
    ["the reply is lost", (bed) => bed.proxy.cutReplyOf(PASS)],
    ["the request is lost", (bed) => bed.proxy.dropRequest(PASS)],
  ])("a hand-over counts once when %s", async (_, arm) => {
    await using line = await handOver(options, arm);
    const { bed, giver, unlocked, successor, next, fault } = line;
    await fault.done;
    const hold = await soon(successor);
    await soon(unlocked);
    await expectHeldBesidesMarkers(bed, hold.ownerId, 1);
    expect(await bed.lock.getHoldCount({ owner: hold })).toBe(1);
    expect(next.state).toBe("pending");
    if (hold instanceof FencedHold) expect(hold.token).toBeGreaterThan((giver as FencedHold).token);
    await hold.unlock();
    await (await soon(next)).unlock();
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });

  const unanswered = (bed: Bed) => bed.proxy.delayReplies(FOREVER, PASS);

  test("without an answer in time unlock rejects UNAVAILABLE and goes on, and the successor gets the lock [B21]", async () => {
    await using line = await handOver({ ...options, client: { commandTimeout: 3_000 } }, unanswered);
    const { bed, unlocked, successor, next } = line;
    expect(await failsSoon(unlocked)).toMatchObject({ code: "UNAVAILABLE" });
    expect([successor.state, next.state]).toEqual(["pending", "pending"]);
    bed.proxy.restore();
    const hold = await soon(successor);
    await expectHeldBesidesMarkers(bed, hold.ownerId, 1);
    expect(next.state).toBe("pending");
    await atLast(() => hold.unlock());
    await (await soon(next)).unlock();
    await expectNothingLeftSoon(bed);
    expect(bed.troubles).toEqual([]);
  });
});

test("a release by another is heard, behind one of this process that announced nothing [B16]", async () => {
  await using bed = await stage.bed({ client: { pollCap: NEVER } });
  await using other = await stage.bed();
  const giver = await bed.lock.lock();
  const successor = watch(bed.lock.lock());
  const next = watch(bed.lock.lock());
  await until("the first one has listened and asked again", () => bed.proxy.count(script("take")) >= 4);
  await untilQuiet(() => bed.proxy.count(script("take")), 20);
  await stage.server.call("DEL", bed.name);
  await expect(giver.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  const hold = await soon(successor);
  expect(await other.make(bed.name).forceUnlock()).toBe(true);
  await (await soon(next)).unlock();
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  await expectNothingLeft(bed, 20_000);
});
