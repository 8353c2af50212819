/** A lock that goes from hand to hand inside one process, and another process that can hardly hear of it. */
import { expect } from "vitest";
import type { Lock } from "../../src/index.js";
import { PLAIN, row, type VirtualPlace, WRITE, watch } from "../support/place/index.js";

const kinds = [PLAIN, WRITE];

/** Five tasks that take the lock for a millisecond, again and again, while `body` runs. */
async function besideCrowd({ server, pass }: VirtualPlace, lock: Lock, body: () => Promise<void>) {
  let isOver = false;
  const work = async () => {
    while (!isOver) await lock.run(() => new Promise<void>((done) => void server.clock.after(1, done)));
  };
  const crowd = Promise.all(Array.from({ length: 5 }, work));
  await body();
  isOver = true;
  await pass(3_000);
  await crowd;
}

row(
  "a waiter elsewhere has the lock within 50 ms, though the crowd that has it hears no message [§2 hand-over-bound] [B136]",
  { kinds, client: { pollCap: 100 } },
  async (place) => {
    const { lock, rival, a, pass, settle } = place;
    // Makes the connection on which messages come, which stays silent from then on.
    const first = await rival.lock();
    const early = watch(lock.lock());
    await settle();
    await first.unlock();
    await settle();
    await early.value?.unlock();
    await settle();
    a.keep("replies", a.connections.at(-1));
    await besideCrowd(place, lock, async () => {
      await pass(100);
      for (let visits = 0; visits < 2; visits++) {
        const theirs = watch(rival.lock());
        let waited = 0;
        for (; theirs.state === "pending" && waited < 1_000; waited++) await pass(1);
        expect(waited).toBeLessThanOrEqual(60);
        await theirs.value?.unlock();
        await pass(100);
      }
    });
    await a.letGo();
  },
);

row(
  "a process that only tries, and waits never, gets a lock that goes from hand to hand now and then [§2 hand-over-bound]",
  { kinds: [PLAIN] },
  async (place) => {
    const { lock, rival, pass } = place;
    await besideCrowd(place, lock, async () => {
      let taken = 0;
      let tries = 0;
      for (; taken < 2 && tries < 15_000; tries++) {
        await pass(1);
        const theirs = await rival.tryLock();
        if (theirs) taken++;
        await theirs?.unlock();
      }
      expect(taken).toBe(2);
      expect(tries).toBeGreaterThan(16);
    });
  },
);
