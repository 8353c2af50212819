/** Contract section 4: a MultiLock takes all or none, never waits while it holds, and its order is the same for all. */
import { expect } from "vitest";
import { type Lock, MultiLock } from "../../../src/index.js";
import { watch } from "../../support/place/index.js";
import { type Apart, multiRow } from "./apart.js";

const WORDS = ["a0", "b1", "c0", "d1"] as const;
const PATIENT = { pollCap: 3_600_000 };

/** The members' names in the order in which a server was asked to do something with them. */
function namesOn({ servers }: Apart, i: number): string[] {
  const ran = servers[i]?.ran.splice(0) ?? [];
  return ran.filter(({ name }) => name.includes("/")).map(({ args }) => args[1] ?? "");
}

for (const word of WORDS)
  multiRow(
    `while ${word} is another's, a call that waits holds nothing, and nobody else's hold wakes it [§4 multi]`,
    async (place) => {
      const { a, b, of, group, held, pass, servers } = place;
      const theirs = await of(b, word).lock();
      expect(await group(...WORDS).tryLock()).toBeNull();
      expect(held()).toEqual([word]);
      const call = watch(group(...WORDS).lock());
      await pass(2_000);
      expect(held()).toEqual([word]);
      const sent = servers.map(({ ran }) => ran.length);
      for (const other of WORDS.filter((each) => each !== word)) {
        const hold = await of(b, other).tryLock();
        expect(hold, other).not.toBeNull();
        await hold?.unlock();
      }
      await pass(1_000);
      // Two commands of the other client for each lock, and none of this one.
      expect(servers.reduce((sum, { ran }, i) => sum + ran.length - (sent[i] ?? 0), 0)).toBe(6);
      expect(call.state).toBe("pending");
      await theirs.unlock();
      await pass(1_000);
      expect(call.value?.isHeld).toBe(true);
      expect(held()).toEqual([...WORDS]);
      await call.value?.unlock();
      expect(a.onTheirWay).toBe(0);
    },
    PATIENT,
  );

multiRow(
  "a call that is refused returns once what it took is given back: others may take that at once [§4 multi] [§2 nothing-left] [B302]",
  async ({ a, b, of, group, held, settle }) => {
    const theirs = await of(b, "b1").lock();
    a.at(1).keep("replies");
    const call = watch(group("a0", "b1").tryLock());
    await settle();
    a.at(0).keep("requests");
    await a.at(1).letGo();
    expect([call.state, held()]).toEqual(["pending", ["a0", "b1"]]);
    await a.at(0).letGo();
    expect([call.outcome, held()]).toEqual([null, ["b1"]]);
    await theirs.unlock();
  },
);

multiRow(
  "of two members that others have it waits for one after the other, within one wait for both [§4 multi]",
  async ({ b, of, group, held, pass }) => {
    const [first, last] = [await of(b, "b1").lock(), await of(b, "d1").lock()];
    const call = watch(group(...WORDS).lock());
    const late = watch(group(...WORDS).lock({ wait: 3_000 }));
    await pass(1_000);
    await first.unlock();
    await pass(1_999);
    expect([held(), late.outcome]).toEqual([["d1"], "pending"]);
    await pass(1);
    expect(late.outcome).toBe("WAIT_TIMEOUT");
    await last.unlock();
    await pass(1_000);
    await call.value?.unlock();
    expect(call.state).toBe("resolved");
  },
  PATIENT,
);

multiRow(
  "calls in opposite orders do not dead-lock, and each gets its turn [§4 multi] [F37]",
  async ({ a, b, of, pass }) => {
    let inside = 0;
    const visit = async (multi: MultiLock): Promise<void> => {
      for (let n = 0; n < 15; n++)
        await multi.run(async () => {
          expect(++inside).toBe(1);
          await new Promise((resolve) => setImmediate(resolve));
          inside--;
        });
    };
    const groupOf = (party: typeof a, words: readonly string[]) =>
      new MultiLock(...words.map((word) => of(party, word)));
    const all = watch(
      Promise.all([
        visit(groupOf(a, WORDS)),
        visit(groupOf(b, [...WORDS].reverse())),
        visit(groupOf(b, ["d1", "a0"])),
      ]),
    );
    for (let i = 0; i < 600 && all.state === "pending"; i++) await pass(100);
    expect(all.state).toBe("resolved");
  },
);

multiRow(
  "members are asked for in the order of their full names and given back in reverse, however they are given [§4 multi]",
  async (place) => {
    const { group, b, of, settle } = place;
    const multi = group("c0", "a0", "d0", "b0");
    const hold = await multi.lock();
    expect(namesOn(place, 0)).toEqual(["a", "b", "c", "d"]);
    await hold.unlock();
    expect(namesOn(place, 0)).toEqual(["d", "c", "b", "a"]);
    const theirs = await of(b, "c0").lock();
    namesOn(place, 0);
    expect(await multi.tryLock()).toBeNull();
    await settle();
    // What a lost round took goes back last first.
    expect(namesOn(place, 0).at(-1)).toBe("a");
    await theirs.unlock();
  },
);

multiRow(
  "a prefix counts in the order of names [§4 multi]",
  async ({ party, server, pass }) => {
    const [z, a, b] = [party({ prefix: "z" }), party({ prefix: "a" }), party()];
    const theirs = [await b.client.getLock("a:y").lock(), await b.client.getLock("z:x").lock()];
    const call = watch(new MultiLock(z.client.getLock("x"), a.client.getLock("y")).lock());
    await pass(1_000);
    await theirs[0]?.unlock();
    await pass(1_000);
    // It waited for "a:y", and does for "z:x" since.
    expect(call.outcome).toBe("pending");
    await theirs[1]?.unlock();
    await pass(1_000);
    await call.value?.unlock();
    expect([call.state, server.names().filter((name) => !name.includes("{")).length]).toEqual([
      "resolved",
      0,
    ]);
    for (const each of [z, a, b]) await each.close();
  },
  PATIENT,
);

for (const words of [
  ["read", "write"],
  ["write", "read"],
  ["read", "lock", "write"],
])
  multiRow(
    `both sides of one lock, given as ${words}, are taken the write side first [§4 multi]`,
    async ({ a, b, server, pass }) => {
      const sides = a.client.getReadWriteLock("sides");
      const locks: Record<string, Lock> = {
        read: sides.readLock(),
        write: sides.writeLock(),
        lock: a.client.getLock("a"),
      };
      const multi = new MultiLock(...words.map((word) => locks[word] as Lock));
      const theirs = await b.client.getReadWriteLock("sides").readLock().lock();
      const call = watch(multi.lock());
      await pass(100);
      await theirs.unlock();
      await pass(1_000);
      expect(call.value?.isHeld).toBe(true);
      expect(server.hash("sides").mode).toBe("write");
      await call.value?.unlock();
    },
  );

multiRow(
  "a call whose owner has a member is not held up by calls that wait for that owner [§4 multi]",
  async ({ a, b, of, group, held, pass }) => {
    const words = Array.from({ length: 6 }, (_, i) => `b${i}0`);
    const theirs = await Promise.all(words.map((word) => of(b, word).lock()));
    const losers = words.map((word) => watch(group("a0", word).lock()));
    await pass(1_000);
    expect(held()).not.toContain("a0");
    const hold = await group("a0", "c1").lock();
    for (const each of theirs) await each.unlock();
    await pass(2_000);
    expect(losers.every(({ state }) => state === "pending")).toBe(true);
    const calls = [
      watch(group("a0", "c1").lock({ owner: hold })),
      watch(group("a0", "d1").lock({ owner: hold })),
    ];
    const elsewhere = [watch(group("e0", "f1").run(() => 1)), watch(of(a, "g0").run(() => 1))];
    await pass(0);
    expect([...calls, ...elsewhere].map(({ state }) => state)).toEqual(Array(4).fill("resolved"));
    const controller = new AbortController();
    const aborted = watch(group("a0", "c1").lock({ signal: controller.signal }));
    const late = watch(group("a0", "c1").lock({ wait: 500 }));
    controller.abort("enough");
    await pass(500);
    expect([aborted.outcome, late.outcome]).toEqual(["enough", "WAIT_TIMEOUT"]);
    for (const each of [...calls.map(({ value }) => value), hold]) await each?.unlock();
    for (let i = 0; i < 200; i++) {
      await pass(50);
      for (const { value } of losers) if (value?.isHeld) await value.unlock();
    }
    expect(losers.map(({ state }) => state)).toEqual(losers.map(() => "resolved"));
  },
  PATIENT,
);
