import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairForce } from "../../src/scripts/generated.js";
import {
  type Bench,
  CHANNEL,
  forms,
  held,
  LOCK,
  OTHER,
  publishers,
  type States,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";
import { ALIVE, GRACE, inLine, JAVA, mine, QUEUE, THIRD, TIMEOUTS, wakeChannel, woken } from "./fair-line.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([wakeChannel(OTHER)]);
});
afterAll(() => bench?.stop());

const CALL = "holdfast_over:{job}:6e3814a1-e847-452b-a982-45baf93a1df2:1:7";
const done = { [CALL]: text("1", 20_000) };
const KEYS = {
  tombstone: CALL,
  lock: LOCK,
  queue: QUEUE,
  timeouts: TIMEOUTS,
  alive: ALIVE,
  channel: CHANNEL,
};
const bystander = { [TOMBSTONE]: text("1", 40_000) };
const waiting = inLine([OTHER, { due: -1, alive: 9_000 }], [JAVA, { due: -1 }]);

describe.each(forms(fairForce))("fair/force, %s", (form) => {
  const force = (publish = "PUBLISH") =>
    bench.runner(fairForce, form)(KEYS, { tombstoneTtl: 20_000, publish, grace: GRACE });

  test.each(publishers)(
    "1: whoever held it; the queue stays, and its head is woken by %s",
    async (publish) => {
      await bench.put({ [LOCK]: held({ [THIRD]: "2" }, 30_000), ...waiting, ...bystander });
      expect(await force(publish)).toBe(1);
      await bench.expect({ ...waiting, ...bystander, ...done });
      expect(await bench.heard()).toEqual(woken(OTHER, publish));
      expect(await force(publish)).toBe(1);
      await bench.expect({ ...waiting, ...bystander, ...done });
      expect(await bench.heard()).toEqual([]);
    },
  );

  test("1: the dead at the head are passed over, by the server's clock or for want of a score", async () => {
    await bench.put({
      ...mine(30_000),
      ...inLine(
        [JAVA, { due: -1 }],
        ["b0e5b1a2-0000-4000-8000-000000000000:9", {}],
        ["6e3814a1-e847-452b-a982-45baf93a1df2:9", { alive: 9_000 }],
        [THIRD, { due: 900_000, alive: -1 }],
        [OTHER, { due: -1, alive: 9_000 }],
      ),
    });
    expect(await force()).toBe(1);
    await bench.expect({ ...inLine([OTHER, { due: -1, alive: 9_000 }]), ...done });
    expect(await bench.heard()).toEqual(woken(OTHER));
  });

  test("a Redisson waiter, of which only its score is known, is woken as well", async () => {
    await bench.put({
      ...mine(30_000),
      ...inLine([JAVA, { due: 330_000 }], [OTHER, { due: 630_000, alive: 9_000 }]),
    });
    expect(await force()).toBe(1);
    expect(await bench.heard()).toEqual(woken(JAVA));
  });

  test("1: nobody waits, so nobody is told", async () => {
    await bench.put(mine(30_000));
    expect(await force()).toBe(1);
    await bench.expect(done);
    expect(await bench.heard()).toEqual([]);
  });

  test("1: sent again, it leaves the next holder and the queue alone", async () => {
    const states = { ...mine(30_000), ...inLine([JAVA, { due: -1 }], [OTHER, { due: 630_000 }]), ...done };
    await bench.put(states);
    expect(await force()).toBe(1);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("0: it was free, and nothing is announced or changed", async () => {
    const states = { ...inLine([JAVA, { due: -1 }], [OTHER, { due: 630_000 }]), ...bystander };
    await bench.put(states);
    expect(await force()).toBe(0);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", -1), ...waiting });
    await expect(force()).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", -1), ...waiting });
    expect(await bench.heard()).toEqual([]);
  });

  test("other data in the key of those alive stays as it is; the lock is given back", async () => {
    const states = { ...inLine([JAVA, { due: 330_000 }]), [ALIVE]: text("theirs", 60_000) };
    await bench.put({ ...mine(30_000), ...states });
    await expect(force()).rejects.toThrow("WRONGTYPE");
    await bench.expect({ ...states, ...done });
  });

  test("without memory, and by one who may not announce", async () => {
    await bench.put({ ...mine(30_000), ...waiting });
    await bench.outOfMemory(async () => {
      expect(await force()).toBe(1);
    });
    await bench.expect({ ...waiting, ...done });
    await bench.put({ ...mine(30_000), ...waiting });
    const mute = await bench.withoutChannels();
    expect(
      await bench.runner(
        fairForce,
        form,
        mute,
      )(KEYS, { tombstoneTtl: 20_000, publish: "PUBLISH", grace: GRACE }),
    ).toBe(1);
    await bench.expect({ ...waiting, ...done });
    expect(await bench.heard()).toEqual([]);
  });

  const dead = inLine([OTHER, { due: 330_000, alive: -1 }]);
  test.each<[string, States]>([
    ["hrandfield", {}],
    ["del", {}],
    ["set", {}],
    ["time", {}],
    ["lindex", {}],
    ["zscore", waiting],
    ["lpop", dead],
    ["zrem", dead],
  ])("who may not %s is told so", async (command, queue) => {
    await bench.put({ ...mine(30_000), ...queue });
    await bench.expectRefusal(command, fairForce, form, KEYS, {
      tombstoneTtl: 20_000,
      publish: "PUBLISH",
      grace: GRACE,
    });
    expect(await bench.heard()).toEqual([]);
  });
});
