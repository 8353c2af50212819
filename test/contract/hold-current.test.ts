/** Contract section 8: `lock.currentHold()`. */
import { describe, expect } from "vitest";
import { eachKind } from "./scene.js";

eachKind("currentHold", (test) => {
  describe("of the current owner", () => {
    test("in a run it is what its function got, and null before and after", async ({ lock }) => {
      expect(lock.currentHold()).toBeNull();
      await lock.run(async (hold) => {
        expect(lock.currentHold()).toBe(hold);
        await lock.run((nested) => expect(lock.currentHold()).toBe(nested));
        expect(lock.currentHold()).toBe(hold);
      });
      expect(lock.currentHold()).toBeNull();
    });

    test("in a scope it is the innermost that is held, not what others have", async ({
      client,
      lock,
      other,
    }) => {
      await client.scope(async () => {
        const outer = await lock.lock();
        const inner = await lock.lock();
        expect(lock.currentHold()).toBe(inner);
        expect(other.currentHold()).toBeNull();
        await client.scope(async () => expect(lock.currentHold()).toBeNull());
        await lock.unlock();
        expect(lock.currentHold()).toBe(outer);
        const unlocking = outer.unlock();
        expect(lock.currentHold()).toBeNull();
        await unlocking;
      });
    });

    test("outside both there is none, and a lost one is none", async ({ client, lock }) => {
      const bare = await lock.lock();
      expect(lock.currentHold()).toBeNull();
      await bare.unlock();
      await client.scope(async () => {
        await lock.lock();
        await lock.forceUnlock();
        expect(lock.currentHold()).toBeNull();
      });
    });
  });
});
