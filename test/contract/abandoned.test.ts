/**
 * Contract section 8: a bare hold whose `Hold` is garbage before its unlock is given back, with one warning for each place.
 * In virtual time, except that the engine collects garbage when it likes.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "vitest";
import type { Hold, Lock, MultiHold } from "../../src/index.js";
import { letGo } from "../support/kept-holds.js";
import { GROUPS, PLAIN, RED, type RowOptions, row, type VirtualPlace } from "../support/place/index.js";
import { until } from "../support/until.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** A third of the default watchdogTimeout, at which a hold is renewed. */
const ROUND = 10_000;

type Warning = Error & { code?: string };
type Body = (place: VirtualPlace, warnings: Warning[]) => Promise<unknown>;

/** A row in which garbage is noticed, and the library's warnings are recorded. */
function garbageRow(title: string, options: RowOptions, body: Body): void {
  row(title, options, async (place) => {
    letGo();
    const warnings: Warning[] = [];
    const hear = (warning: Warning) => {
      if (warning.name === "HoldfastWarning") warnings.push(warning);
    };
    process.on("warning", hear);
    try {
      await body(place, warnings);
    } finally {
      process.off("warning", hear);
    }
  });
}

/** Takes a hold, and keeps no reference to it. */
async function drop(take: () => Promise<unknown>): Promise<void> {
  await take();
}

/** Resolves when a renewal has found the lock to be abandoned. */
async function untilFree(lock: Lock, { pass }: VirtualPlace): Promise<void> {
  await until("the lock is free", async () => {
    collect();
    await pass(ROUND);
    return !(await lock.isLocked());
  });
}

garbageRow(
  "a bare hold without a lease whose Hold is garbage is given back, as often as that happens [§8 garbage] [B30]",
  {},
  async (place) => {
    const { lock, twin } = place;
    for (const take of [() => lock.lock(), () => lock.tryLock(), () => lock.lock()]) {
      await drop(take);
      await untilFree(twin, place);
    }
  },
);

garbageRow(
  "a hold that is given back as garbage is warned of once for each place that took one [§8 garbage]",
  { kinds: [PLAIN] },
  async (place, warnings) => {
    const { lock } = place;
    const here = () => lock.lock();
    const { stackTraceLimit } = Error;
    // The place is known also to users who want no stacks.
    Error.stackTraceLimit = 0;
    for (const take of [here, here, () => lock.tryLock(), here]) {
      await drop(take);
      await untilFree(lock, place);
    }
    expect(Error.stackTraceLimit).toBe(0);
    Error.stackTraceLimit = stackTraceLimit;
    await until("two warnings", () => warnings.length > 1);
    expect(warnings).toHaveLength(2);
    for (const { code, message } of warnings) {
      expect(code).toBe("HOLDFAST_DROPPED_HOLD");
      expect(message).toMatch(/^lock "job": a bare hold without a lease was garbage-collected/);
      expect(message).toContain("unlock()");
      expect(message).toContain("abandoned.test.ts");
    }
  },
);

/** Drops a hold in several ways that leave the user something by which to use the lock. */
const KEPT: readonly [string, (place: VirtualPlace) => Promise<unknown>][] = [
  ["has a lease", ({ lock }) => lock.lock({ lease: 600_000 })],
  [
    "is a named owner's",
    async ({ client, lock }) => {
      const owner = client.newOwner();
      await lock.lock({ owner });
      return owner;
    },
  ],
  ["is a scope's", ({ client, lock }) => client.scope(async () => void (await lock.lock()))],
  ["is that of a signal in use", async ({ lock }) => (await lock.lock()).signal],
  [
    "has been named as owner",
    async ({ lock }) => {
      const outer = await lock.lock();
      await (await lock.lock({ owner: outer })).unlock();
    },
  ],
];

for (const [what, take] of KEPT)
  garbageRow(
    `a hold that ${what} is not given back as garbage [§8 garbage] [B184]`,
    { kinds: [PLAIN, RED] },
    async (place) => {
      const kept = await (async () => {
        const left = await take(place);
        return left instanceof AbortSignal ? left : undefined;
      })();
      const dropped = place.kind.make(place.a.clients, "dropped");
      await drop(() => dropped.lock());
      await untilFree(dropped, place);
      expect(await place.twin.isLocked()).toBe(true);
      expect(kept?.aborted ?? false).toBe(false);
      await place.a.close({ timeout: 0 });
    },
  );

/** What of a group's hold its user may keep instead of the hold. */
const PARTS: readonly [string, (place: VirtualPlace) => Promise<unknown>][] = [
  ["a member of the hold", async ({ lock }) => ((await lock.lock()) as MultiHold).members[0]],
  ["the signal of a member", async ({ lock }) => ((await lock.lock()) as MultiHold).members[0]?.signal],
  [
    "a member's current hold",
    async ({ client, lock }) => {
      const member = client.getLock("job");
      return member.run(async () => {
        await lock.lock();
        return member.currentHold();
      });
    },
  ],
];

for (const [what, take] of PARTS)
  garbageRow(
    `a group's hold is not given back as garbage while ${what} is kept [§8 garbage] [B184] [B264]`,
    { kinds: GROUPS },
    async (place) => {
      const dropped = place.kind.make(place.a.clients, "dropped");
      const held = { part: (await take(place)) as Hold | AbortSignal | undefined };
      await drop(() => dropped.lock());
      await untilFree(dropped, place);
      expect(held.part).toBeDefined();
      expect(await place.twin.isLocked()).toBe(true);
      await place.a.close({ timeout: 0 });
    },
  );

garbageRow(
  "a RedLock's hold that has given back a minority of its members is given back as garbage [§8 garbage] [B239]",
  { kinds: [RED] },
  async (place, warnings) => {
    const { lock, settle } = place;
    await drop(async () => {
      const hold = (await lock.lock()) as unknown as MultiHold;
      await settle();
      expect(hold.members).toHaveLength(3);
      await hold.members[2]?.unlock();
      expect(hold.isHeld).toBe(true);
    });
    await untilFree(lock, place);
    await until("the warning", () => warnings.length > 0);
    expect(warnings).toMatchObject([{ code: "HOLDFAST_DROPPED_HOLD" }]);
  },
);
