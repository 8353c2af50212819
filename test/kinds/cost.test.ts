/** What each kind costs the server, counted by the commands that arrive there. */
import { expect, test } from "vitest";
import type { Lock } from "../../src/index.js";
import { pause, soon, useStage } from "../faults/harness.js";
import { countCommands, forFile, isPresence } from "../support/index.js";
import { NEVER, Scene } from "./helpers.js";

const stage = await useStage("standalone");

const counter = await forFile(countCommands(stage.server, { leavesOut: isPresence }));

/** The names of the commands that arrived from all clients while `work` ran. */
async function during(work: () => Promise<unknown>): Promise<string[]> {
  await counter.reset();
  await work();
  await counter.settle();
  // Commands of the test itself, and of ioredis when it sets up the subscribed connection.
  const others = ["PUBSUB", "PING", "INFO", "CLIENT", "HELLO", "SELECT", "MONITOR"];
  return counter
    .all()
    .map(([name = ""]) => name)
    .filter((name) => !others.includes(name));
}

type Kind = "lock" | "fair" | "fenced" | "read" | "write";

function lockOf(scene: Scene, kind: Kind, i: number): Lock {
  if (kind === "read" || kind === "write" || kind === "fair") return scene[kind](i);
  return kind === "lock" ? scene.client(i).getLock(scene.name) : scene.client(i).getFencedLock(scene.name);
}

const patient = { pollCap: NEVER };

/** Makes the server load every script that is counted, and the client learn the server's version. */
async function warmUp(lock: Lock): Promise<void> {
  const hold = await lock.lock();
  await (await lock.lock({ owner: hold })).unlock();
  await hold.unlock();
}

test("a downgrade costs one command for each of its steps", async () => {
  await using scene = await Scene.of(stage, patient);
  const [read, write] = [scene.read(0), scene.write(0)];
  for (const side of [read, write]) await warmUp(side);
  await scene.client(0).scope(async () => {
    const steps = [() => write.lock(), () => read.lock(), () => write.unlock(), () => read.unlock()];
    for (const step of steps) expect(await during(step)).toEqual(["EVALSHA"]);
  });
});

test("an upgrade that is refused costs none", async () => {
  await using scene = await Scene.of(stage, patient);
  const owner = await scene.read(0).lock();
  expect(
    await during(() =>
      scene
        .write(0)
        .tryLock(0, undefined, { owner })
        .catch(() => {}),
    ),
  ).toEqual([]);
  await owner.unlock();
});

/** The kind that is held, and the kind that waits for it. */
const HANDOVERS = [
  ["lock", "lock"],
  ["fenced", "fenced"],
  ["fair", "fair"],
  ["write", "write"],
  ["write", "read"],
  ["read", "write"],
] as const;

test.each(HANDOVERS)(
  "from %s to %s: an idle waiter costs nothing, a hand-over a handful",
  async (from, to) => {
    await using scene = await Scene.of(stage, patient, patient);
    for (const [kind, i] of [
      [from, 0],
      [to, 1],
    ] as const) {
      await warmUp(lockOf(scene, kind, i));
    }
    const hold = await lockOf(scene, from, 0).lock({ lease: 120_000 });
    const waiting = await scene.parked(1, () => lockOf(scene, to, 1).lock());
    expect(await during(() => pause(300))).toEqual([]);
    const handedOver = await during(async () => {
      await hold.unlock();
      await soon(waiting);
    });
    console.info(`hand-over from ${from} to ${to}: ${handedOver.join(" ")}`);
    expect(handedOver.filter((name) => name === "EVALSHA").length).toBeLessThanOrEqual(2);
    expect(handedOver.length).toBeLessThanOrEqual(3);
    await (await waiting.promise).unlock();
  },
);

test("fifty waiting readers of one client cost a command each when they enter, and one subscription", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  for (const side of [scene.write(0), scene.read(1)]) await warmUp(side);
  const hold = await scene.write(0).lock();
  const read = scene.read(1);
  const head = await scene.parked(1, () => read.run(() => pause(20)));
  let rest: Promise<unknown> = Promise.resolve();
  const waiting = await during(async () => {
    rest = Promise.all(Array.from({ length: 49 }, () => read.run(() => pause(20))));
    await pause(100);
  });
  expect(waiting).toEqual([]);
  const entered = await during(async () => {
    await hold.unlock();
    await Promise.all([rest, soon(head)]);
  });
  console.info(`50 waiting readers after a write: ${entered.length} commands to let them in and out again`);
  // One release, fifty grants, fifty releases, and the end of the subscription.
  expect(entered.length).toBeLessThanOrEqual(1 + 50 + 50 + 5);
});
