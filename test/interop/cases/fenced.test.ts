/** Fencing tokens rise over the grants of both sides, because both take them from one counter. */
import { expect, test } from "vitest";
import { tokenCounter } from "../../../src/base/names.js";
import { soon } from "../../faults/harness.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { withRedisson } from "../scene.js";
import { expectNothingLeft, parked } from "./waiting.js";

const LEASE = 40_000;

function expectRising(tokens: readonly (bigint | null)[]): void {
  const sorted = [...new Set(tokens)].sort((a, b) => Number((a ?? 0n) - (b ?? 0n)));
  expect(tokens).not.toContain(null);
  expect(tokens).toEqual(sorted);
}

withRedisson("fenced lock", (scene) => {
  test("tokens rise strictly while Java and Node take turns", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("fenced", name);
    const node = scene.node.getFencedLock(name);
    const tokens: (bigint | null)[] = [];
    for (let i = 0; i < 8; i++) {
      tokens.push(await java.lockAndGetToken());
      await java.unlock();
      tokens.push((await node.lock()).token);
      await forced();
      tokens.push(await java.tryLockAndGetToken(0, LEASE));
      await java.unlock();
      tokens.push(await node.run(({ token }) => token));
    }
    expectRising(tokens);

    async function forced(): Promise<void> {
      expect(await java.tryLockAndGetToken(0, LEASE)).toBeNull();
      expect(await java.forceUnlock()).toBe(true);
    }
  });

  test("Java's getToken tells the last one, whoever was given it", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("fenced", name);
    const node = scene.node.getFencedLock(name);
    const hold = await node.lock();
    expect(await java.getToken()).toBe(hold.token);
    await hold.unlock();
    expect(await java.getToken()).toBe(hold.token);
    const token = await java.lockAndGetToken();
    expect(await java.getToken()).toBe(token);
    expect(await scene.redis.get(tokenCounter(name))).toBe(String(token));
    expect(await scene.node.inspect(name)).toMatchObject({ kind: "fenced" });
    await java.unlock();
  });

  test("tokens rise over leases that end, on either side", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("fenced", name);
    const node = scene.newNode({ pollCap: NEVER }).getFencedLock(name);
    const tokens = [await java.tryLockAndGetToken(0, 3_000)];
    const hold = await soon(await parked(scene, name, () => node.lock({ lease: 3_000 })));
    tokens.push(hold.token, await soon(await parked(scene, name, () => java.lockAndGetToken())));
    expectRising(tokens);
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await java.unlock();
  });

  test("tokens rise over force-unlocks by either side", async () => {
    const name = scene.name();
    const thread = await scene.thread();
    const java = thread.lock("fenced", name);
    const node = scene.node.getFencedLock(name);
    const tokens = [await java.lockAndGetToken()];
    expect(await node.forceUnlock()).toBe(true);
    const hold = await node.lock();
    expect(await java.forceUnlock()).toBe(true);
    tokens.push(hold.token, await java.lockAndGetToken());
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(await node.forceUnlock()).toBe(true);
    tokens.push(await node.run(({ token }) => token));
    expectRising(tokens);
  });

  test("Java draws a token for each re-entry, Node's nested hold keeps the first: the next is higher still", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("fenced", name);
    const node = scene.node.getFencedLock(name);
    const tokens = [await java.lockAndGetToken(), await java.lockAndGetToken()];
    expect((await scene.node.inspect(name))?.holders[0]?.count).toBe(2);
    await java.unlock();
    expect(await node.tryLock()).toBeNull();
    await java.unlock();
    await node.run(async ({ token }) => {
      tokens.push(token);
      await node.run((nested) => expect(nested.token).toBe(token));
      expect(await java.getToken()).toBe(token);
    });
    tokens.push(await java.lockAndGetToken());
    await java.unlock();
    expectRising(tokens);
  });

  test("each side's unlock wakes the other at once, with a higher token", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("fenced", name);
    const node = scene.newNode({ pollCap: NEVER }).getFencedLock(name);
    const first = await node.lock({ lease: LEASE });
    const second = await parked(scene, name, () => java.tryLockAndGetToken(NEVER, LEASE));
    await first.unlock();
    const tokens = [first.token, await soon(second)];
    const third = await parked(scene, name, () => node.lock({ lease: LEASE }));
    await java.unlock();
    const hold = await soon(third);
    expectRising([...tokens, hold.token]);
    await hold.unlock();
    await expectNothingLeft(scene, name);
  });

  test("Java's plain lock() on the fenced lock draws a token too", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("fenced", name);
    const node = scene.node.getFencedLock(name);
    const before = await node.run(({ token }) => token);
    await java.lock(LEASE);
    const between = await java.getToken();
    await java.unlock();
    expectRising([before, between, await node.run(({ token }) => token)]);
  });

  test("a crowd of both sides is given tokens in the order of its grants", async () => {
    const name = scene.name();
    const tokens: bigint[] = [];
    const threads = await Promise.all(Array.from({ length: 4 }, () => scene.thread()));
    const rounds = 10;
    await Promise.all(
      threads.flatMap((thread) => [
        (async () => {
          const java = thread.lock("fenced", name);
          for (let i = 0; i < rounds; i++) {
            tokens.push(await java.lockAndGetToken());
            await java.unlock();
          }
        })(),
        (async () => {
          const node = scene.node.getFencedLock(name);
          for (let i = 0; i < rounds; i++) await node.run(({ token }) => tokens.push(token));
        })(),
      ]),
    );
    expect(tokens).toHaveLength(8 * rounds);
    expectRising(tokens);
  });
});
