/** Contract section 3: parallel runs take turns; a run among many costs no more than a run among few. */
import { expect } from "vitest";
import type { Hold, Lock } from "../../src/index.js";
import { LockClient } from "../../src/index.js";
import { connectionLike } from "../support/index.js";
import { PLAIN } from "./kinds.js";
import { eachKind } from "./scene.js";

const FEW = 250;
/**
 * The factor of runs. The cost should grow by the same factor; it grows by its square if each run looks at all others.
 */
const TIMES = 4;
const MOST = 8;

/** Milliseconds of CPU for that many parallel runs of one owner. */
async function cost(client: LockClient, lock: Lock, runs: number): Promise<number> {
  let active = 0;
  const seen: number[] = [];
  const begun = process.cpuUsage();
  await client.scope(() =>
    Promise.all(
      Array.from({ length: runs }, (_, i) =>
        lock.run(async (hold: Hold) => {
          seen.push(i);
          expect(++active).toBe(1);
          expect(hold.isHeld).toBe(true);
          await Promise.resolve();
          active--;
        }),
      ),
    ),
  );
  const { user, system } = process.cpuUsage(begun);
  expect(seen).toEqual(Array.from({ length: runs }, (_, i) => i));
  return (user + system) / 1_000;
}

eachKind(
  "many parallel runs of one owner",
  (test, kind) => {
    test("cost in proportion to their number", { timeout: 120_000 }, async ({ server, lockName }) => {
      await using client = new LockClient(connectionLike(server.connect()), { commandTimeout: 30_000 });
      const lock = kind.make(client, lockName);
      await cost(client, lock, FEW);
      const ratios: number[] = [];
      // Other processes may slow one measurement down, but hardly all three.
      for (let i = 0; i < 3 && !ratios.some((ratio) => ratio < MOST); i++) {
        const few = await cost(client, lock, FEW);
        ratios.push((await cost(client, lock, FEW * TIMES)) / few);
      }
      expect(Math.min(...ratios)).toBeLessThan(MOST);
    });
  },
  [PLAIN], // Only one kind, because the CPU is counted for the whole process.
);
