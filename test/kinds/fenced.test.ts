/** Fencing tokens: one for each outermost grant, always higher than all before, exact at any size. */
import { expect, test } from "vitest";
import type { FencedHold, FencedLock } from "../../src/index.js";
import { bundledWorker } from "../faults/build-worker.js";
import { SOON, Stage, soon, useStage, watch } from "../faults/harness.js";
import { startWorker, until } from "../support/index.js";
import { keysOf, Scene } from "./helpers.js";
import type { Start } from "./lock-worker.js";

const stage = await useStage("standalone");
const bundle = bundledWorker("../kinds/lock-worker.ts");

const fenced = (scene: Scene, i = 0): FencedLock => scene.client(i).getFencedLock(scene.name);

/** The last token of the server's counter. */
async function drawn(scene: Scene): Promise<bigint> {
  const state = await scene.state(keysOf.counter(scene.name));
  expect(state).toMatchObject({ type: "string", ttl: -1 });
  return BigInt(state.value as string);
}

/** Takes the lock and gives it back; its token must be that of the counter. */
async function draw(scene: Scene, i = 0): Promise<bigint> {
  const hold = await fenced(scene, i).lock();
  const { token } = hold;
  expect(typeof token).toBe("bigint");
  expect(token).toBe(await drawn(scene));
  await hold.unlock();
  return token;
}

function expectRising(tokens: readonly bigint[]): void {
  const sorted = [...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1));
  expect(tokens).toEqual(sorted);
}

test("waiters draw their tokens in the order in which they are granted", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const tokens: bigint[] = [];
  const calls = Array.from({ length: 20 }, (_, n) =>
    fenced(scene, n % 2).run(({ token }) => void tokens.push(token)),
  );
  await Promise.all(calls);
  expect(tokens).toHaveLength(20);
  expectRising(tokens);
});

test("a nested hold has the token of the outermost one, in all forms, and draws none", async () => {
  await using scene = await Scene.of(stage, {});
  const lock = fenced(scene);
  await scene.client(0).scope(async () => {
    const outer = await lock.lock();
    const inner = await lock.lock({ lease: 60_000 });
    const tried = (await lock.tryLock()) as FencedHold;
    expect(inner.token).toBe(outer.token);
    expect(tried.token).toBe(outer.token);
    await lock.run((hold) => expect(hold.token).toBe(outer.token));
    await outer.unlock();
    expect((await lock.lock()).token).toBe(outer.token);
    expect(await drawn(scene)).toBe(outer.token);
    for (const _ of [1, 2, 3]) await lock.unlock();
    const next = await lock.lock();
    expect(next.token).toBeGreaterThan(outer.token);
    await lock.unlock();
  });
});

test("tokens rise over a client's end, and over the death of a process", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const tokens = [await draw(scene)];
  await scene.client(0).close();
  tokens.push(await draw(scene, 1));
  const worker = await startWorker(bundle());
  const start: Start = {
    port: stage.server.port,
    name: scene.name,
    side: "fenced",
    options: { watchdogTimeout: 3_000 },
  };
  await worker.request("start", start);
  await worker.request("take", { id: "it" });
  tokens.push(await drawn(scene));
  await worker.kill();
  tokens.push(await draw(scene, 1));
  expectRising(tokens);
});

test("tokens rise over a server that has forgotten everything", async () => {
  await using own = await Stage.start(["standalone"]);
  await using scene = await Scene.of(own, {});
  const tokens = [await draw(scene), await draw(scene)];
  await own.server.call("FLUSHALL");
  tokens.push(await draw(scene), await draw(scene));
  const lost = await fenced(scene).lock();
  tokens.push(lost.token);
  await own.server.restart();
  await until("it is taken again", async () => (await fenced(scene).tryLock())?.unlock().then(() => true), {
    timeout: SOON,
  });
  tokens.push(await draw(scene));
  expectRising(tokens);
  await expect(lost.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

for (const before of ["9007199254740992", "9223372036854775800"]) {
  test(`tokens are exact beyond what a number can tell: after ${before}`, async () => {
    await using scene = await Scene.of(stage, {});
    await scene.call("SET", keysOf.counter(scene.name), before);
    const hold = await fenced(scene).lock();
    expect(hold.token).toBe(BigInt(before) + 1n);
    expect(await drawn(scene)).toBe(hold.token);
    const inner = await fenced(scene).lock({ owner: hold });
    expect(inner.token).toBe(hold.token);
    await inner.unlock();
    await hold.unlock();
    expect(await draw(scene)).toBe(BigInt(before) + 2n);
  });
}

test("a grant whose reply is lost draws one token, and that is the hold's", async () => {
  await using scene = await Scene.of(stage, {});
  const before = await draw(scene);
  await scene.call("SET", keysOf.counter(scene.name), String(before + 1_000_000_000_000n));
  for (let n = 1n; n <= 5n; n++) {
    const cut = scene.bed(0).proxy.cutReplyOf(scene.own);
    const hold = await soon(watch(fenced(scene).lock()));
    expect(cut.hits).toBe(1);
    expect(hold.token).toBe(before + 1_000_000_000_000n + n);
    expect(await drawn(scene)).toBe(hold.token);
    expect((await scene.state()).value).toEqual({ [hold.ownerId]: "1" });
    await hold.unlock();
  }
  await scene.expectNothingLeft();
});

test("a call that is given up draws a token at most, and later ones are higher", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const hold = await fenced(scene).lock();
  await expect(fenced(scene, 1).lock({ wait: 2_500 })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
  expect(await fenced(scene, 1).tryLock()).toBeNull();
  expect(await drawn(scene)).toBe(hold.token);
  await hold.unlock();
  expect(await draw(scene, 1)).toBeGreaterThan(hold.token);
});
