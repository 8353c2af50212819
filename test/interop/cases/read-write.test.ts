/** Readers and writers of both sides on one read-write lock: who may enter, who is woken, and what Redis then has. */
import { expect, test } from "vitest";
import { failOnUnhandledRejections, soon } from "../../faults/harness.js";
import { allKeys, keyState } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { type Scene, withRedisson } from "../scene.js";
import {
  failure,
  keysLeft,
  newParty,
  type Party,
  type PartyKind,
  parked,
  readTtl,
  SIDES,
  saysLost,
} from "./party.js";
import { DIRECTIONS, type Side } from "./sides.js";

failOnUnhandledRejections();

const holder = async (scene: Scene, side: Side, kind: PartyKind, name: string) => {
  const lock = (await newParty(scene, side)).take(kind, name);
  await lock.lock(NEVER);
  return lock;
};

/** The keys of a lock with their values and remaining seconds; its name and the party's are replaced in all texts. */
async function traces(scene: Scene, name: string, { owner }: Party): Promise<unknown> {
  const bare = (text: string) => text.replaceAll(name, "<name>").replaceAll(owner, "<owner>");
  const mine = new Set(await keysLeft(scene, name));
  const states = [...(await allKeys(scene.redis, name))].filter(([key]) => mine.has(key));
  return states.map(([key, { value, ttl }]) => [
    bare(key),
    JSON.parse(bare(JSON.stringify(value))),
    Math.round(ttl / 10_000) * 10,
  ]);
}

const SHAPES: readonly [string, (unique: string) => string][] = [
  ["without braces", (unique) => unique],
  ["with a hash tag", (unique) => `{${unique}}:rest`],
  ["with a brace only", (unique) => `${unique}{`],
];

/** The steps of one owner; Redis is compared after each. */
const STEPS: readonly ((party: Party, name: string) => Promise<unknown>)[] = [
  (party, name) => party.take("read", name).lock(40_000),
  (party, name) => party.take("read", name).lock(80_000),
  (party, name) => party.take("read", name).lock(20_000),
  (party, name) => party.take("read", name).unlock(),
  (party, name) => party.take("read", name).unlock(),
  (party, name) => party.take("read", name).unlock(),
  (party, name) => party.take("write", name).lock(40_000),
  (party, name) => party.take("read", name).lock(80_000),
  (party, name) => party.take("read", name).lock(60_000),
  (party, name) => party.take("write", name).unlock(),
  (party, name) => party.take("read", name).unlock(),
  (party, name) => party.take("read", name).unlock(),
  (party, name) => party.take("read", name).lock(),
  (party, name) => party.take("read", name).unlock(),
];

async function walk(scene: Scene, side: Side, shape: (unique: string) => string): Promise<unknown[]> {
  const name = scene.name(shape);
  const party = await newParty(scene, side);
  const seen: unknown[] = [];
  for (const step of STEPS) {
    await step(party, name);
    seen.push(await traces(scene, name, party));
  }
  return seen;
}

withRedisson("read-write lock", (scene) => {
  test("readers of both sides share, and writers of both sides are refused", async () => {
    const name = scene.name();
    const readers = await Promise.all([...SIDES, ...SIDES].map((side) => newParty(scene, side)));
    for (const each of readers) expect(await each.take("read", name).tryLock(0, NEVER)).toBe(true);
    for (const side of SIDES) {
      const stranger = await newParty(scene, side);
      expect(await stranger.take("write", name).tryLock(0, NEVER)).toBe(false);
    }
    const counts = Object.fromEntries(readers.map(({ owner }) => [owner, "1"]));
    expect((await keyState(scene.redis, name)).value).toEqual({ mode: "read", ...counts });
    for (const { owner } of readers) expect(await readTtl(scene, name, owner)).toBeGreaterThan(NEVER / 2);
    for (const each of readers) await each.take("read", name).unlock();
    expect(await keysLeft(scene, name)).toEqual([]);
  });

  for (const [what, shape] of SHAPES) {
    test(`re-entry on either side leaves the same keys, counts and TTLs, names ${what}`, async () => {
      const java = await walk(scene, "Java", shape);
      expect(java[1]).toHaveLength(3);
      expect(java.at(-1)).toEqual([]);
      expect(await walk(scene, "Node", shape)).toEqual(java);
    });
  }

  for (const [one, other] of DIRECTIONS) {
    test(`a ${one} writer keeps out readers and writers of ${other}, and its leaving wakes a waiting writer there`, async () => {
      const name = scene.name();
      const writer = await holder(scene, one, "write", name);
      const stranger = await newParty(scene, other);
      expect(await stranger.take("read", name).tryLock()).toBe(false);
      expect(await stranger.take("write", name).tryLock()).toBe(false);
      const waiting = await parked(scene, stranger, () => stranger.take("write", name).lock(NEVER));
      await writer.unlock();
      await soon(waiting);
      expect(await (await newParty(scene, one)).take("read", name).tryLock()).toBe(false);
      await stranger.take("write", name).unlock();
      expect(await keysLeft(scene, name)).toEqual([]);
    });

    for (const side of SIDES) {
      test(`a waiting ${side} writer is woken when the last reader leaves, a ${one} one after a ${other} one`, async () => {
        const name = scene.name();
        const first = await holder(scene, other, "read", name);
        const last = await holder(scene, one, "read", name);
        const party = await newParty(scene, side);
        const writer = party.take("write", name);
        const waiting = await parked(scene, party, () => writer.lock(NEVER));
        await first.unlock();
        await scene.redis.ping();
        expect(waiting.state).toBe("pending");
        await last.unlock();
        await soon(waiting);
        await writer.unlock();
        expect(await keysLeft(scene, name)).toEqual([]);
      });
    }

    test(`a ${one} writer leaves: all waiting readers of both sides read at once`, async () => {
      const name = scene.name();
      const writer = await holder(scene, one, "write", name);
      const readers = await Promise.all([...SIDES, ...SIDES].map((side) => newParty(scene, side)));
      const waiting = [];
      for (const each of readers) {
        waiting.push(await parked(scene, each, () => each.take("read", name).lock(NEVER)));
      }
      await writer.unlock();
      await Promise.all(waiting.map((each) => soon(each)));
      expect(await scene.redis.hlen(name)).toBe(1 + readers.length);
      for (const each of readers) await each.take("read", name).unlock();
      expect(await keysLeft(scene, name)).toEqual([]);
    });

    test(`${one} forces the write side of ${other}: a reader that waits there is woken, the holder is told`, async () => {
      const name = scene.name();
      const writer = await holder(scene, other, "write", name);
      const party = await newParty(scene, other);
      const reader = party.take("read", name);
      const waiting = await parked(scene, party, () => reader.lock(NEVER));
      const forcing = await newParty(scene, one);
      expect(await forcing.take("read", name).forceUnlock()).toBe(false);
      expect(await forcing.take("write", name).forceUnlock()).toBe(true);
      await soon(waiting);
      expect(await failure(writer.unlock())).toSatisfy(saysLost);
      await reader.unlock();
    });

    test(`${one} forces the read side of ${other}: a writer that waits there is woken, the holder is told`, async () => {
      const name = scene.name();
      const reader = await holder(scene, other, "read", name);
      const party = await newParty(scene, other);
      const writer = party.take("write", name);
      const waiting = await parked(scene, party, () => writer.lock(NEVER));
      const forcing = await newParty(scene, one);
      expect(await forcing.take("write", name).forceUnlock()).toBe(false);
      expect(await forcing.take("read", name).forceUnlock()).toBe(true);
      await soon(waiting);
      expect(await failure(reader.unlock())).toSatisfy(saysLost);
      await writer.unlock();
    });

    test(`what ${one} holds, as ${other} sees it`, async () => {
      const name = scene.name();
      const [mine, theirs] = await Promise.all([newParty(scene, one), newParty(scene, other)]);
      const seen = async () => ({
        read: await theirs.take("read", name).isLocked(),
        write: await theirs.take("write", name).isLocked(),
      });
      expect(await seen()).toEqual({ read: false, write: false });
      expect(await theirs.take("write", name).remainTimeToLive()).toBe(-2);
      await mine.take("read", name).lock(NEVER);
      expect(await seen()).toEqual({ read: true, write: false });
      expect(await theirs.take("read", name).remainTimeToLive()).toBeGreaterThan(NEVER / 2);
      expect(await theirs.take("read", name).getHoldCount()).toBe(0);
      await mine.take("read", name).unlock();
      await mine.take("write", name).lock(NEVER);
      expect(await seen()).toEqual({ read: false, write: true });
      expect(await theirs.take("write", name).remainTimeToLive()).toBeGreaterThan(NEVER / 2);
      await mine.take("read", name).lock(NEVER);
      expect(await seen()).toEqual({ read: true, write: true });
      expect(await theirs.take("write", name).getHoldCount()).toBe(0);
      await mine.take("write", name).unlock();
      expect(await seen()).toEqual({ read: true, write: false });
      await mine.take("read", name).unlock();
      expect(await seen()).toEqual({ read: false, write: false });
    });
  }
});
