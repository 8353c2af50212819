/** Calls that are given up at the worst moments: while a try is on its way, and just when they get the lock. */
import { expect, test } from "vitest";
import { soon, useStage, type Watched, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { keysOf, NEVER, Scene } from "./helpers.js";

const stage = await useStage("standalone");

const patient = { pollCap: NEVER };
const ROUNDS = 12;

type Waiting = "fair" | "write" | "read";

/** The number of waiters that the server knows. */
async function places(scene: Scene): Promise<number> {
  const { queue, writers } = keysOf;
  const states = await Promise.all([queue, writers].map((key) => scene.state(key(scene.name))));
  return states.reduce((sum, { value }) => sum + (Array.isArray(value) ? value.length : 0), 0);
}

/** Lets the event loop turn that many times. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

for (const kind of ["fair", "write"] as const) {
  test(`${kind}: a call that is aborted at any moment of its first tries leaves no place behind`, async () => {
    await using scene = await Scene.of(stage, {}, patient);
    const hold = await scene[kind](0).lock();
    for (let round = 0; round < 2 * ROUNDS; round++) {
      const controller = new AbortController();
      const call = watch(scene[kind](1).lock({ signal: controller.signal }));
      await turns(round);
      controller.abort(new Error("enough"));
      await expect(soon(call)).rejects.toThrow("enough");
    }
    await until("no place is left", async () => (await places(scene)) === 0);
    await hold.unlock();
    await scene.expectNothingLeft();
  });

  test(`${kind}: a call whose time is over at any moment of its tries leaves no place behind`, async () => {
    await using scene = await Scene.of(stage, {}, patient);
    const hold = await scene[kind](0).lock();
    const calls = Array.from({ length: 2 * ROUNDS }, (_, n) => watch(scene[kind](1).tryLock(1 + 4 * n)));
    await until("all are over", () => calls.every(({ state }) => state !== "pending"));
    for (const { error, value } of calls) {
      expect(value ?? null).toBeNull();
      if (error !== undefined) expect(error).toMatchObject({ code: "UNAVAILABLE" });
    }
    await until("no place is left", async () => (await places(scene)) === 0);
    await hold.unlock();
    await scene.expectNothingLeft();
  });
}

/** The kind that is held, the waiting kind that is given up at the release, and the kind that must get the lock then. */
const RACES: readonly (readonly [held: Waiting, leaving: Waiting, next: Waiting])[] = [
  ["fair", "fair", "fair"],
  ["write", "write", "write"],
  ["write", "write", "read"],
  ["write", "read", "write"],
  ["read", "write", "write"],
];

test.each(RACES)(
  "%s is given back just when the %s that waits is given up: the next %s gets it at once",
  async (held, leaving, next) => {
    await using scene = await Scene.of(stage, {}, patient, patient);
    for (let round = 0; round < ROUNDS; round++) {
      const hold = await scene[held](0).lock();
      const controller = new AbortController();
      const head = await scene.parked(1, () => scene[leaving](1).lock({ signal: controller.signal }));
      const behind: Watched<{ unlock(): Promise<void> }> = await scene.parked(2, () => scene[next](2).lock());
      const released = hold.unlock();
      await turns(round);
      controller.abort(new Error("enough"));
      await released;
      // If the call was granted before it was given up, the test gives the lock back.
      await until("the first call is over", () => head.state !== "pending");
      await head.value?.unlock();
      await (await soon(behind)).unlock();
      await until("nobody listens any more", async () => (await scene.listeners()) === 0);
    }
    expect(await places(scene)).toBe(0);
    await scene.expectNothingLeft();
  },
);

test.each(RACES)(
  "%s is given back just when the client of the %s that waits is closed: the next %s gets it at once",
  async (held, leaving, next) => {
    for (let round = 0; round < 3; round++) {
      await using scene = await Scene.of(stage, {}, patient, patient);
      const hold = await scene[held](0).lock();
      const head = await scene.parked(1, () => scene[leaving](1).lock());
      const behind: Watched<{ unlock(): Promise<void> }> = await scene.parked(2, () => scene[next](2).lock());
      const released = hold.unlock();
      await turns(3 * round);
      const closed = scene.client(1).close({ timeout: 0 });
      await released;
      await until("the first call is over", () => head.state !== "pending");
      await closed;
      await (await soon(behind)).unlock();
      await head.value?.unlock();
      await scene.expectNothingLeft();
    }
  },
);
