/** Contract section 3: for turns, both sides of a read-write lock are one lock. */
import { expect } from "vitest";
import type { Hold, Lock } from "../../src/index.js";
import { type VirtualPlace, type Watched, WRITE, watch } from "../support/place/index.js";
import { inScope, type Runs } from "./named-runs.js";

type Sides = VirtualPlace & { readonly runs: Runs; readonly read: Lock; readonly write: Lock };

/** A row with both sides of a read-write lock, inside one scope. */
function withSides(title: string, body: (place: Sides) => unknown): void {
  inScope(
    title,
    (place) => {
      const sides = place.client.getReadWriteLock("job");
      return body({ ...place, read: sides.readLock(), write: sides.writeLock() });
    },
    [WRITE],
  );
}

withSides(
  "sibling reads run together, a write waits for them, and reads for it [§3 turns-of-sides]",
  async ({ read, write, runs, settle }) => {
    runs.begin("r1", read);
    runs.begin("r2", read);
    expect(await runs.now()).toEqual(["r1", "r2"]);
    runs.begin("w", write);
    await settle();
    expect(await runs.end("r1")).toEqual(["r2"]);
    expect(await runs.end("r2")).toEqual(["w"]);
    runs.begin("r3", read);
    runs.begin("r4", read);
    expect(await runs.now()).toEqual(["w"]);
    expect(await runs.end("w")).toEqual(["r3", "r4"]);
    for (const name of ["r3", "r4"]) await runs.end(name);
  },
);

withSides(
  "a read never waits behind a write that only waits for its turn [§3 turns-of-sides]",
  async ({ read, write, runs }) => {
    runs.begin("r1", read);
    await runs.now();
    runs.begin("w", write);
    await runs.now();
    runs.begin("r2", read);
    expect(await runs.now()).toEqual(["r1", "r2"]);
    await runs.end("r1");
    expect(await runs.end("r2")).toEqual(["w"]);
    await runs.end("w");
  },
);

withSides(
  "writes that are called while a sibling read runs follow it in call order, runs and bare ones [§3 turns-of-sides] [B204]",
  async ({ read, write, runs }) => {
    runs.begin("r", read);
    for (const name of ["w1", "w2", "w3"]) runs.begin(name, write);
    expect(await runs.now()).toEqual(["r"]);
    await runs.end("r");
    await runs.endInTurn("w1", "w2", "w3");
    runs.begin("again", read);
    await runs.now();
    const granted: number[] = [];
    const calls = [1, 2, 3].map(async (n) => {
      const hold = await write.lock();
      granted.push(n);
      return hold;
    });
    await runs.now();
    expect(granted).toEqual([]);
    await runs.end("again");
    expect(granted).toEqual([1, 2, 3]);
    for (const call of calls) await (await call).unlock();
  },
);

withSides(
  "a write inside a read's run is refused at once, and a sibling of that run waits [§3 turns-of-sides]",
  async ({ read, write, runs, settle }) => {
    const refused: Watched<Hold | number>[] = [];
    runs.begin("r", read, {}, () => {
      refused.push(watch(write.lock()), watch(write.run(() => 1)));
    });
    const sibling = watch(write.run(() => 2));
    await settle();
    expect(refused.map(({ outcome }) => outcome)).toEqual(["UPGRADE_REFUSED", "UPGRADE_REFUSED"]);
    expect(sibling.outcome).toBe("pending");
    await runs.end("r");
    expect(sibling.outcome).toBe(2);
  },
);

withSides(
  "a write whose owner takes a bare read hold while it waits for its turn is refused when that comes [§3 turns-of-sides]",
  async ({ read, write, runs, settle }) => {
    runs.begin("r", read);
    await settle();
    const sibling = watch(write.run(() => 2));
    await settle();
    expect(sibling.outcome).toBe("pending");
    const bare = await read.lock();
    await runs.end("r");
    await settle();
    expect(sibling.outcome).toBe("UPGRADE_REFUSED");
    await bare.unlock();
  },
);
