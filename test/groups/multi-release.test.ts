/** How a hold on a MultiLock is given back: in reverse order, also after errors, and what `unlock` reports. */
import { describe, expect, test } from "vitest";
import { isLockError, type LockError, MultiLock } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { script } from "../faults/harness.js";
import { countCommands, isPresence, until } from "../support/index.js";
import { Hall, useStages } from "./helpers.js";

const stages = await useStages();

/** The errors in an error that stands for several. */
const errorsOf = (error: Error): LockError[] => [...((error as LockError).errors ?? [])] as LockError[];

/** The words of the locks whose release the server received, in its order. */
async function released(hall: Hall, act: () => Promise<unknown>): Promise<string[]> {
  const [first] = stages;
  if (!first) throw new Error("there is no server");
  await using counter = await countCommands(first.server, { leavesOut: isPresence });
  await act();
  await counter.settle();
  const words = counter
    .all()
    .filter(script("release", hall.mark))
    .map((command) => command.find((word) => word.includes(hall.mark)) ?? "");
  return words.map((word) => word.slice(0, -hall.mark.length - 1));
}

describe.concurrent("the reverse order", () => {
  test("of the full names, whatever the order they are given in", async () => {
    await using hall = await Hall.of(stages, {}, {});
    const multi = new MultiLock(hall.lock(0, "c"), hall.lock(0, "a"), hall.lock(0, "d"), hall.lock(0, "b"));
    const hold = await multi.lock();
    expect(await released(hall, () => hold.unlock())).toEqual(["d", "c", "b", "a"]);
    expect(await released(hall, () => multi.run(() => {}))).toEqual(["d", "c", "b", "a"]);
    const leased = await multi.lock({ lease: 20_000 });
    expect(await released(hall, () => leased.unlock())).toEqual(["d", "c", "b", "a"]);
  });

  test("of both sides of one lock: the write side last", async () => {
    await using hall = await Hall.of(stages, {});
    const bodies: unknown[] = [];
    hall.bed(0).proxy.onCommand(({ command }) => script("release")(command) && bodies.push(command[1]));
    // Twice, because a script's first call sends its whole text.
    for (const _ of [1, 2])
      for (const lock of [hall.read(0, "b"), hall.write(0, "b")]) await lock.run(() => {});
    const alone = bodies.splice(0).slice(-2);
    for (const members of [
      [hall.read(0, "a"), hall.write(0, "a")],
      [hall.write(0, "a"), hall.read(0, "a")],
    ]) {
      await new MultiLock(...members).run(() => {});
      expect(bodies.splice(0)).toEqual(alone);
    }
    await hall.expectNothingLeft();
  });

  test("what a call gives back before it waits, too: the last that it took first", async () => {
    await using hall = await Hall.of(stages, {}, {});
    const theirs = await hall.lock(1, "c").lock();
    const words = await released(hall, () => hall.multi(0, "a", "b", "c", "d").tryLock());
    expect(words.at(-1)).toBe("a");
    expect([...words].sort()).toEqual(["a", "b", "d"]);
    await theirs.unlock();
  });
});

describe.concurrent("unlock", () => {
  test("a member's hold can be given back by itself; the rest follows at once, and the group's hold is lost", async () => {
    await using hall = await Hall.of(stages, {});
    const hold = await hall.multi(0, "a", "b").lock();
    await hold.members[1]?.unlock();
    expect(hold.isHeld).toBe(false);
    expect(() => hold.assertHeld()).toThrow();
    await hall.expectNothingLeft();
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  });

  test("one member's server is silent: the others are given back, and a further call asks again", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1, commandTimeout: 3_000 }, {});
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"), hall.lock(0, "c"));
    const hold = await multi.lock({ lease: 60_000 });
    hall.bed(1).proxy.blackhole();
    const error = await failure(hold.unlock());
    expect(error).toMatchObject({ code: "UNAVAILABLE", lockName: hall.name("b") });
    expect(errorsOf(error)).toHaveLength(1);
    expect(errorsOf(error)[0]).toBe(error);
    expect(await hall.held()).toEqual(["b"]);
    expect(await failure(hold.unlock())).toMatchObject({ code: "UNAVAILABLE" });
    expect(hold.isHeld).toBe(false);
    hall.bed(1).proxy.restore();
    await hall.expectNothingLeft();
    await until("a further call tells so", () => hold.unlock().then(() => true));
    expect(hold.signal.aborted).toBe(false);
  });

  test("one member is lost: the others are given back, LOCK_LOST", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"), hall.lock(0, "c"));
    for (const [i, word] of [[0, "a"] as const, [1, "b"] as const, [0, "c"] as const]) {
      const hold = await multi.lock();
      await hall.del(i, word);
      const error = await failure(hold.unlock());
      expect(error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(errorsOf(error).map(({ lockName }) => lockName)).toEqual([hall.name(word)]);
      await hall.expectNothingLeft();
      expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", lockName: multi.name });
      await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" }); // the outcome of the first unlock
    }
  });

  test("several fail: the first LockError, with all of them in errors", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1, commandTimeout: 3_000 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"), hall.lock(0, "c"), hall.lock(0, "d"));
    const hold = await multi.lock();
    await hall.del(0, "a");
    await hall.del(0, "c");
    hall.bed(1).proxy.blackhole();
    const error = await failure(hold.unlock());
    expect(isLockError(error)).toBe(true);
    const codes = errorsOf(error).map(({ lockName, code }) => [lockName.slice(0, 1), code]);
    expect(codes.sort()).toEqual([
      ["a", "LOCK_LOST"],
      ["b", "UNAVAILABLE"],
      ["c", "LOCK_LOST"],
    ]);
    expect(error).toBe(errorsOf(error)[0]);
    expect(await hall.held()).toEqual(["b"]);
    hall.bed(1).proxy.restore();
    await hall.expectNothingLeft();
  });

  test("of a run: what fn throws wins, a silent member is told by an error event only", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1, commandTimeout: 3_000 });
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
    const errors: unknown[] = [];
    for (const i of [0, 1]) hall.client(i).on("error", (event) => void errors.push(event));
    await expect(multi.run(() => Promise.reject(new Error("mine")))).rejects.toThrow("mine");
    await hall.expectNothingLeft();
    const result = await multi.run(() => {
      hall.bed(1).proxy.blackhole();
      return "done";
    });
    expect(result).toBe("done");
    expect(errors).toHaveLength(2);
    for (const event of errors) {
      expect(event).toMatchObject({ lockName: multi.name, kind: "multi", cause: { code: "UNAVAILABLE" } });
    }
    expect(await hall.held()).toEqual(["b"]);
    hall.bed(1).proxy.restore();
    await hall.expectNothingLeft();
  });
});
