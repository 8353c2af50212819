/** One queue for both sides: the places in it, the order of the hand-overs, and the meaning of the scores. */
import { expect, test } from "vitest";
import { fairAlive, fairQueue, fairTimeouts } from "../../../src/base/names.js";
import { failOnUnhandledRejections, soon, type Watched } from "../../faults/harness.js";
import { keyState } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { type Scene, withRedisson } from "../scene.js";
import { failure, keysLeft, newParty, type Party, parked, saysLost } from "./party.js";
import { DIRECTIONS, type Side } from "./sides.js";

failOnUnhandledRejections();

/** The default of Redisson and of this library: for how long a place lasts after the place before it. */
const GRACE = 300_000;

interface Queued {
  readonly party: Party;
  readonly call: Watched<unknown>;
}

/** One party of each of these sides waits, in this order. */
async function queueUp(scene: Scene, name: string, sides: readonly Side[]): Promise<Queued[]> {
  const queued: Queued[] = [];
  for (const side of sides) {
    const party = await newParty(scene, side);
    const call = await parked(scene, party, () => party.take("fair", name).lock(NEVER));
    queued.push({ party, call });
  }
  return queued;
}

/** Each party gets the lock in its turn, and not before. */
async function expectServed(name: string, queued: readonly Queued[]): Promise<void> {
  for (const [i, { party, call }] of queued.entries()) {
    await soon(call);
    expect(queued.slice(i + 1).every((later) => later.call.state === "pending")).toBe(true);
    await party.take("fair", name).unlock();
  }
}

/** The places, head first: the owner (of a side whose owner has one name), and until when, in milliseconds from now. */
async function places(scene: Scene, name: string): Promise<[owner: string, score: number][]> {
  const queue = await scene.redis.lrange(fairQueue(name), 0, -1);
  const { value } = await keyState(scene.redis, fairTimeouts(name));
  const scores = new Map(value as [string, number][]);
  expect([...scores.keys()].sort()).toEqual([...queue].sort());
  return queue.map((owner) => [owner, scores.get(owner) ?? Number.NaN]);
}

/** A tolerance, because a try and its repetition see a TTL that differs by a millisecond. */
const CLOSE = 100;
const expectNear = (value: number, expected: number) =>
  expect(Math.abs(value - expected), `${value} near ${expected}`).toBeLessThan(CLOSE);

withRedisson("fair lock", (scene) => {
  for (const [one, other] of DIRECTIONS) {
    const order = [one, other, one] as const;

    test(`${order.join(", ")} queue behind ${other} and are served in order, and nothing is left`, async () => {
      const name = scene.name();
      const holder = await newParty(scene, other);
      await holder.take("fair", name).lock(NEVER);
      const queued = await queueUp(scene, name, order);
      expect(await keysLeft(scene, name)).toEqual(
        [fairAlive(name), name, fairQueue(name), fairTimeouts(name)].sort(),
      );
      await holder.take("fair", name).unlock();
      await expectServed(name, queued);
      expect(await keysLeft(scene, name)).toEqual([]);
    });

    test(`the places of ${order.join(", ")} are as Redisson computes them, and move up by one grace at each grant`, async () => {
      const name = scene.name();
      const holder = await newParty(scene, other);
      await holder.take("fair", name).lock(NEVER);
      const ends = Date.now() + NEVER;
      const queued = await queueUp(scene, name, order);
      const before = await places(scene, name);
      for (const [i, { party }] of queued.entries()) {
        if (party.side === "Java") expect(before[i]?.[0]).toBe(party.owner);
        expectNear(before[i]?.[1] ?? 0, ends + (i + 1) * GRACE);
      }
      await holder.take("fair", name).unlock();
      await soon(queued[0]?.call as Watched<unknown>);
      const after = await places(scene, name);
      expect(after).toHaveLength(order.length - 1);
      for (const [i, [owner, score]] of after.entries()) {
        expect(owner).toBe(before[i + 1]?.[0]);
        expect(score).toBe((before[i + 1]?.[1] ?? 0) - GRACE);
      }
      await expectServed(name, queued);
    });

    test(`${one} forces what ${other} holds: the head of the queue is served, on either side`, async () => {
      const name = scene.name();
      const holder = await newParty(scene, other);
      await holder.take("fair", name).lock(NEVER);
      const queued = await queueUp(scene, name, [other, one]);
      const forcing = await newParty(scene, one);
      // Redisson's unlock of a free fair lock reports nothing, so the loss shows only when the next one has the lock.
      let robbed = holder;
      for (const { party, call } of queued) {
        expect(await forcing.take("fair", name).forceUnlock()).toBe(true);
        await soon(call);
        expect(await failure(robbed.take("fair", name).unlock())).toSatisfy(saysLost);
        robbed = party;
      }
      await robbed.take("fair", name).unlock();
      expect(await forcing.take("fair", name).forceUnlock()).toBe(false);
      expect(await keysLeft(scene, name)).toEqual([]);
    });
  }
});
