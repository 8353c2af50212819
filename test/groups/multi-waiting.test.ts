/**
 * How a MultiLock waits: never while it holds a member, in an order that is the same for all; and a wait can be given
 * up.
 */
import { describe, expect, test } from "vitest";
import { type Hold, type Lock, MultiLock } from "../../src/index.js";
import { KINDS } from "../contract/kinds.js";
import { failsSoon, script, soon, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { Hall, NEVER, useStages } from "./helpers.js";

const stages = await useStages();

const patient = { pollCap: NEVER };
const WORDS = ["a", "b", "c", "d"];

/** The words of the locks that a client has tried to take, in the server's order. */
function asked(hall: Hall, i: number): string[] {
  return hall
    .scripts(i)
    .filter(({ command }) => script("acquire")(command) || script("reenter")(command))
    .map(
      ({ command }) =>
        command.find((word) => word.includes(hall.mark))?.slice(0, -hall.mark.length - 1) ?? "",
    );
}

describe.concurrent("it never waits while it holds", () => {
  test.for(WORDS)("%s is held for long: all others can be had", async (word) => {
    await using hall = await Hall.of(stages, patient, {});
    const theirs = await hall.lock(1, word).lock();
    const call = await hall.parked(word, () => hall.multi(0, ...WORDS).lock());
    expect(await hall.held()).toEqual([word]);
    // It tries all members at once, then the refused one alone, and once more when it listens.
    const tries = () => asked(hall, 0).filter((each) => each === word);
    await until("it has asked again", () => tries().length === 3);
    const sent = hall.scripts(0).length;
    for (const other of WORDS.filter((each) => each !== word)) {
      const hold = await hall.lock(1, other).tryLock();
      expect(hold, other).not.toBeNull();
      await hold?.unlock();
    }
    expect(await hall.held()).toEqual([word]);
    // The call waits for that member only, so the holds on the others have not woken it.
    expect(hall.scripts(0)).toHaveLength(sent);
    expect(call.state).toBe("pending");
    await theirs.unlock();
    const hold = await soon(call);
    expect(await hall.held()).toEqual(WORDS);
    await hold.unlock();
    await hall.expectNothingLeft();
  });

  for (const kind of KINDS) {
    test(`for a ${kind.name} among others of every kind`, async () => {
      await using hall = await Hall.of(stages, patient, { ...patient, server: 1 }, {});
      const words = KINDS.map((_, i) => `k${i}`);
      const members = KINDS.map((each, i) => hall.lock(each === kind ? 0 : i % 2, words[i] ?? "", each));
      const word = words[KINDS.indexOf(kind)] ?? "";
      const theirs = await hall.lock(2, word, kind.rival).lock();
      const call = await hall.parked(word, () => new MultiLock(...members).lock());
      expect(await hall.held()).toEqual([word]);
      await theirs.unlock();
      await (await soon(call)).unlock();
      await hall.expectNothingLeft();
    });
  }

  test("two are held: it waits for one after the other, and holds neither", async () => {
    await using hall = await Hall.of(stages, patient, {});
    const [b, d] = await Promise.all([hall.lock(1, "b").lock(), hall.lock(1, "d").lock()]);
    const call = await hall.parked("b", () => hall.multi(0, ...WORDS).lock());
    await b.unlock();
    await until("it waits for d", async () => (await hall.channels()).join().includes(hall.name("d")));
    await until("it holds nothing", async () => (await hall.held()).join() === "d");
    await d.unlock();
    await (await soon(call)).unlock();
    await hall.expectNothingLeft();
  });

  test("opposite orders do not dead-lock, and each gets its turn [F37]", async () => {
    await using hall = await Hall.of(stages, patient, patient);
    let inside = 0;
    const visit = async (multi: MultiLock): Promise<void> => {
      for (let n = 0; n < 15; n++) {
        await multi.run(async () => {
          expect(++inside).toBe(1);
          await new Promise((resolve) => setImmediate(resolve));
          inside--;
        });
      }
    };
    await Promise.all([
      visit(hall.multi(0, ...WORDS)),
      visit(hall.multi(1, ...[...WORDS].reverse())),
      visit(hall.multi(1, "d", "a")),
    ]);
    await hall.expectNothingLeft();
  });
});

describe.concurrent("how many members a call asks for before it has an answer", () => {
  test("all, while nobody is known to want one of them", async () => {
    await using hall = await Hall.of(stages, patient);
    hall.bed(0).proxy.delayReplies(NEVER, script("acquire"));
    const call = watch(hall.multi(0, ...WORDS).lock());
    await until("all are granted", async () => (await hall.held()).join() === WORDS.join());
    expect(call.state).toBe("pending");
    hall.bed(0).proxy.restore();
    await (await soon(call)).unlock();
    await hall.expectNothingLeft();
  });

  test("the first, after a call for one of them was refused", async () => {
    await using hall = await Hall.of(stages, patient, {});
    const theirs = await hall.lock(1, "a").lock();
    expect(await hall.multi(0, "a", "c").tryLock(2_000)).toBeNull();
    expect(asked(hall, 0).slice(0, 2)).toEqual(["a", "c"]);
    // That is remembered for a second, and on a busy machine a call may come later.
    await until("a call asks for the first alone", async () => {
      hall.bed(0).proxy.clear();
      expect(await hall.multi(0, ...WORDS).tryLock(400)).toBeNull();
      return new Set(asked(hall, 0)).size === 1;
    });
    await theirs.unlock();
    await hall.expectNothingLeft();
  });

  test("of many calls at once, one for all and the others for none", async () => {
    await using hall = await Hall.of(stages, patient);
    hall.bed(0).proxy.delayReplies(NEVER, script("acquire"));
    const calls = Array.from({ length: 20 }, () => watch(hall.multi(0, ...WORDS).lock()));
    await until("one is granted", async () => (await hall.held()).join() === WORDS.join());
    // The others: the first of them asks for the first member, those behind it for none.
    expect(asked(hall, 0)).toEqual([...WORDS, "a"]);
    hall.bed(0).proxy.restore();
    for (const call of calls) await (await soon(call)).unlock();
    await hall.expectNothingLeft();
  });

  test("the first, while a call of this client waits for one of them", async () => {
    await using hall = await Hall.of(stages, patient, {});
    const theirs = await Promise.all(["a", "c"].map((word) => hall.lock(1, word).lock()));
    const waiting = await hall.parked("c", () => hall.lock(0, "c").lock());
    hall.bed(0).proxy.clear();
    expect(await hall.multi(0, ...WORDS).tryLock(2_000)).toBeNull();
    expect(new Set(asked(hall, 0))).toEqual(new Set(["a"]));
    await Promise.all(theirs.map((hold) => hold.unlock()));
    await (await soon(waiting)).unlock();
    await hall.expectNothingLeft();
  });
});

describe.concurrent("the order in which members are asked for", () => {
  test("by full name, whatever the order they are given in", async () => {
    await using hall = await Hall.of(stages, { prefix: "app" });
    await (await hall.multi(0, "c", "b", "d", "a").lock()).unlock();
    expect(asked(hall, 0)).toEqual(["app:a", "app:b", "app:c", "app:d"]);
  });

  test("the prefix counts: two clients of one server", async () => {
    await using hall = await Hall.of(stages, { prefix: "z" }, { prefix: "a" }, {});
    const taken = [`a:${hall.name("y")}`, `z:${hall.name("x")}`];
    const theirs = await Promise.all(taken.map((name) => hall.client(2).getLock(name).lock()));
    const multi = new MultiLock(hall.lock(0, "x"), hall.lock(1, "y"));
    const call = await hall.parked("y", () => multi.lock());
    // Refused both, the call waits for the first.
    expect((await hall.channels()).join()).not.toContain(hall.name("x"));
    await Promise.all(theirs.map((hold) => hold.unlock()));
    await (await soon(call)).unlock();
  });

  test.for<[string, (hall: Hall) => Lock[]]>([
    ["read, write", (hall) => [hall.read(0, "a"), hall.write(0, "a")]],
    ["write, read", (hall) => [hall.write(0, "a"), hall.read(0, "a")]],
    ["read, a lock before it, write", (hall) => [hall.read(0, "b"), hall.lock(0, "a"), hall.write(0, "b")]],
  ])("both sides of one lock, given as %s: the write side first", async ([_, members], { expect }) => {
    await using hall = await Hall.of(stages, patient, patient);
    const multi = new MultiLock(...members(hall));
    for (const lock of [hall.read(1, members(hall).length === 3 ? "b" : "a"), undefined]) {
      const theirs: Hold | undefined = await lock?.lock();
      const call = watch(multi.lock());
      if (theirs) await until("it waits", async () => (await hall.channels()).length > 0);
      await theirs?.unlock();
      const hold = await soon(call);
      expect(await hall.hash(0, members(hall).length === 3 ? "b" : "a")).toMatchObject({ mode: "write" });
      await hold.unlock();
    }
    await hall.expectNothingLeft();
  });
});

describe.concurrent("a call that is not granted", () => {
  test("tryLock gives null at once, and after its wait", async () => {
    await using hall = await Hall.of(stages, patient, {});
    for (const word of WORDS) {
      const theirs = await hall.lock(1, word).lock();
      expect(await hall.multi(0, ...WORDS).tryLock()).toBeNull();
      expect(await hall.held()).toEqual([word]);
      expect(await hall.multi(0, ...WORDS).tryLock(2_500)).toBeNull();
      // A call whose time is over does not wait until its members are given back and its subscriptions have ended.
      await until("only theirs is held", async () => (await hall.held()).join() === word);
      await until("nobody listens", async () => (await hall.channels()).length === 0);
      await theirs.unlock();
    }
    await hall.expectNothingLeft();
  });

  test("one try asks for each member once, and for none when the first is refused", async () => {
    await using hall = await Hall.of(stages, patient, {});
    const multi = hall.multi(0, ...WORDS);
    for (const [word, expected] of [["a", ["a"]] as const, ["c", WORDS] as const]) {
      const theirs = await hall.lock(1, word).lock();
      hall.bed(0).proxy.clear();
      expect(await multi.tryLock()).toBeNull();
      expect(asked(hall, 0)).toEqual(expected);
      await theirs.unlock();
    }
  });

  test("its wait is for all members together", async () => {
    await using hall = await Hall.of(stages, patient, {});
    const [a, b] = [await hall.lock(1, "a").lock({ lease: 4_000 }), await hall.lock(1, "b").lock()];
    const call = watch(hall.multi(0, "a", "b").lock({ wait: 4_500 }));
    await until("it waits for b", async () => (await hall.channels()).join().includes(hall.name("b")));
    expect(await failsSoon(call)).toMatchObject({ code: "WAIT_TIMEOUT" });
    expect(call.took).toBeLessThan(8_000); // the wait is one for all members, not one for each
    await expect(a.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await b.unlock();
    await hall.expectNothingLeft();
  });

  test("a wait of almost nothing ends, also behind others of the process", async () => {
    await using hall = await Hall.of(stages, patient, {});
    const theirs = await hall.lock(1, "a").lock();
    const first = await hall.parked("a", () => hall.lock(0, "a").lock());
    const call = watch(hall.multi(0, "a", "b").lock({ wait: Number.MIN_VALUE }));
    await until("it is over", () => call.state !== "pending");
    expect(call.state).toBe("rejected");
    await theirs.unlock();
    await (await soon(first)).unlock();
    await hall.expectNothingLeft();
  });
});
