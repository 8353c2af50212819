import { readFileSync } from "node:fs";
import fc from "fast-check";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../support/index.js";
import { type Scene, withEachRedisson } from "../scene.js";
import { type Call, type Kind, WATCHDOG } from "./calls.js";
import { NUMBERS } from "./deliberate.js";
import { Ear } from "./ear.js";
import { type Figures, play } from "./play.js";
import { ACTORS, type ActorName, type Cast, type NodeClient, type Site, type Step } from "./worlds.js";

const LONGEST = 120_000;
/** For each kind, beside the stories. A change of one operator in a script has shown in the first ten or so. */
const RUNS = Number(process.env.HOLDFAST_SEQUENCES ?? 15);

const lease = fc.constantFrom(undefined, 5_000, 20_000, 60_000, 90_000);
const few = fc.integer({ min: 1, max: 3 });
const permitId = fc.integer({ min: 0, max: 5 }).map((i) => `p${i}`);

function verbs(...names: string[]): fc.Arbitrary<Call> {
  return fc.constantFrom(...names).map((verb) => ({ verb }));
}

const onLock = fc.oneof(
  { weight: 5, arbitrary: fc.record({ verb: fc.constant("tryLock"), lease }) },
  { weight: 4, arbitrary: verbs("unlock") },
  { weight: 2, arbitrary: verbs("forceUnlock", "isLocked", "getHoldCount", "lapse") },
);

const CALLS: Readonly<Record<string, fc.Arbitrary<Call>>> = {
  lock: onLock,
  fair: fc.oneof(
    { weight: 4, arbitrary: verbs("lock", "unlock", "unlock") },
    {
      weight: 1,
      arbitrary: fc.record({
        verb: fc.constant("tryLock"),
        wait: fc.constantFrom(undefined, undefined, 200),
        lease: fc.constantFrom(20_000, 60_000),
      }),
    },
    { weight: 1, arbitrary: verbs("forceUnlock", "isLocked", "getHoldCount", "lapse") },
  ),
  fenced: onLock,
  readwrite: fc
    .tuple(onLock, fc.constantFrom("read" as const, "read" as const, "write" as const))
    .map(([call, side]) => ({ ...call, side })),
  semaphore: fc.oneof(
    { weight: 4, arbitrary: fc.record({ verb: fc.constantFrom("tryAcquire", "release"), permits: few }) },
    {
      weight: 2,
      arbitrary: fc.record({ verb: fc.constantFrom("trySetPermits", "addPermits"), permits: few }),
    },
    { weight: 1, arbitrary: verbs("availablePermits", "drainPermits") },
  ),
  permits: fc.oneof(
    { weight: 4, arbitrary: fc.record({ verb: fc.constant("tryAcquire"), lease }) },
    { weight: 4, arbitrary: fc.record({ verb: fc.constantFrom("release", "tryRelease"), permitId }) },
    {
      weight: 1,
      arbitrary: fc.record({
        verb: fc.constant("updateLeaseTime"),
        permitId,
        lease: fc.constantFrom(5_000, 90_000),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        verb: fc.constantFrom("trySetPermits", "setPermits", "addPermits"),
        permits: few,
      }),
    },
    { weight: 1, arbitrary: verbs("availablePermits", "acquiredPermits", "getPermits", "lapse", "lapse") },
  ),
  latch: fc.oneof(
    { weight: 1, arbitrary: fc.record({ verb: fc.constant("trySetCount"), permits: few }) },
    { weight: 3, arbitrary: verbs("countDown", "countDown", "getCount") },
  ),
};

/** A sequence from words: `node1 tryLock read 20000`. */
function story(...lines: string[]): Step[] {
  return lines.map((line) => {
    const [actor, verb = "", ...rest] = line.split(" ");
    const side = rest.find((word) => word === "read" || word === "write");
    const number = rest.map(Number).find((each) => each > 0);
    const permitId = rest.find((word) => /^p\d$/.test(word));
    const isCount = verb.endsWith("Permits") || verb === "release";
    return {
      actor: actor as ActorName,
      call: { verb, side, permitId, ...(isCount ? { permits: number } : { lease: number }) },
    };
  });
}

/** Sequences that are played first: together they have each deliberate difference at least once. */
const STORIES: Readonly<Record<string, Step[][]>> = {
  lock: [story("node1 tryLock 60000", "node1 tryLock 5000", "node1 unlock", "node1 unlock")],
  fair: [
    story("node1 tryLock", "java1 forceUnlock", "node1 unlock"),
    story("node1 tryLock", "java1 lock", "node1 forceUnlock"),
  ],
  fenced: [story("java1 tryLock", "java1 unlock", "node1 tryLock", "node1 tryLock", "node1 unlock")],
  readwrite: [
    story(
      "node1 tryLock write 60000",
      "node1 tryLock read 5000",
      "node1 tryLock read 5000",
      "node1 unlock read",
    ),
    story("node1 tryLock write", "node1 tryLock read", "node1 unlock write", "node1 unlock read"),
    story("node1 unlock read"),
    story("java1 tryLock read", "node1 tryLock read 60000", "java1 lapse", "node1 unlock read"),
    story(
      "java1 tryLock write",
      "java1 tryLock read 20000",
      "java1 unlock write",
      "node1 tryLock read 20000",
      "node1 unlock read",
    ),
    story("java1 tryLock read", "java1 lapse", "node1 tryLock write 20000", "node1 unlock write"),
    story("node1 tryLock read", "java1 forceUnlock read", "node1 tryLock write"),
    story("node1 tryLock write", "node1 tryLock read", "node2 forceUnlock write", "node1 unlock read"),
    story("node1 tryLock write", "node1 tryLock read", "node2 forceUnlock write", "node1 tryLock read"),
    story("node1 tryLock write", "node1 tryLock read", "node1 forceUnlock write", "node1 tryLock read"),
    story("java1 tryLock read", "node1 forceUnlock read"),
    story(
      "node1 tryLock read",
      "node1 lapse",
      "java2 tryLock read",
      "node1 lapse",
      "node1 tryLock read 5000",
    ),
  ],
  permits: [
    story("java1 trySetPermits 2", "node1 tryAcquire", "java1 tryAcquire 20000", "java2 release p0"),
    story("node1 trySetPermits 2", "java1 tryAcquire 20000", "java1 lapse", "node1 setPermits 3"),
    story("node1 trySetPermits 1", "java1 tryAcquire 20000", "node1 updateLeaseTime p0 5000"),
    story(
      "node1 trySetPermits 3",
      "java1 tryAcquire 5000",
      "java1 tryAcquire 20000",
      "java1 lapse",
      "node1 release p1",
    ),
    story(
      "node1 trySetPermits 3",
      "java1 tryAcquire 5000",
      "java1 tryAcquire 20000",
      "java1 lapse",
      "node1 release p0",
    ),
    story(
      "node1 trySetPermits 2",
      "java1 tryAcquire 20000",
      "java1 tryAcquire",
      "node1 setPermits 1",
      "node1 release p0",
    ),
  ],
};

withEachRedisson("sequences", (scene) => {
  let cast: Cast;
  let alone: RedisServer;
  const figures: Figures = { sequences: 0, calls: 0, deliberate: new Map() };

  beforeAll(async () => {
    if (scene.missing !== undefined) return;
    alone = await startRedis();
    cast = await assemble(scene, alone);
  });
  afterAll(() => alone?.stop());

  test.each(Object.entries(CALLS))("%s", { timeout: 120_000 + 1_000 * RUNS }, async (kind, calls) => {
    const examples = (STORIES[kind] ?? []).map((steps): [Step[]] => [steps]);
    const step = fc.record({ actor: fc.constantFrom(...ACTORS), call: calls });
    const sequence = fc.array(step as fc.Arbitrary<Step>, { minLength: 1, maxLength: 40, size: "max" });
    await fc.assert(
      fc.asyncProperty(sequence, (steps) => play(cast, kind as Kind, scene.name(), steps, figures)),
      // The time limit also ends the search for the shortest failing sequence, so that no time-out hides the failure.
      {
        numRuns: RUNS + examples.length,
        examples,
        interruptAfterTimeLimit: LONGEST,
        markInterruptAsFailure: true,
      },
    );
  });

  test("each deliberate difference was one, and docs/interop.md has the same ones", () => {
    const { sequences, calls, deliberate } = figures;
    const numbers = [...deliberate].map(([number, count]) => `${number} ${count}`).sort();
    console.log(`interop: ${sequences} sequences with ${calls} calls compared; ${numbers.join(", ")}`);
    expect([...deliberate.keys()].sort()).toEqual([...NUMBERS].sort());
    const page = readFileSync(new URL("../../../docs/interop.md", import.meta.url), "utf8");
    expect(Array.from(page.matchAll(/^\| ([WD]\d+) /gm), ([, number]) => number).sort()).toEqual(
      [...NUMBERS].sort(),
    );
  });
});

async function assemble(scene: Scene, alone: RedisServer): Promise<Cast> {
  const nodes = await Promise.all([nodeClient(scene), nodeClient(scene)]);
  return {
    mixed: await site(scene.redis),
    redisson: await site(alone.connect() as Redis),
    nodes: nodes as [NodeClient, NodeClient],
    java: await scene.newJava({ watchdog: WATCHDOG }),
    javaAlone: await scene.newJava({ url: alone.url, watchdog: WATCHDOG }),
  };
}

async function site(redis: Redis): Promise<Site> {
  return { redis, ear: await Ear.listen(redis) };
}

async function nodeClient(scene: Scene): Promise<NodeClient> {
  const client = scene.newNode({ pollCap: 60_000, watchdogTimeout: WATCHDOG });
  const hold = await client.getLock(scene.name()).lock();
  await hold.unlock();
  return { client, id: hold.ownerId.slice(0, hold.ownerId.lastIndexOf(":")) };
}
