/** Runs of one owner take turns: which runs share a turn, and which run is next. In virtual time. */
import { describe, expect, test as plain } from "vitest";
import { type Hold, type Lock, type LockOptions, MultiLock } from "../../src/index.js";
import { Turns } from "../../src/locks/turns.js";
import { byName, KINDS } from "../contract/kinds.js";
import {
  type Deferred,
  deferred,
  NAME,
  type Scene,
  sceneOf,
  sidesOf,
  testIn,
  testInScope,
  type Watched,
  watch,
} from "./scene.js";

/** Runs with names. Each goes on until the test ends it. */
class Runs {
  /** The names of the runs that run now. */
  readonly #inside = new Set<string>();
  /** The names of all runs, in the order in which they began. */
  readonly began: string[] = [];
  readonly #ends = new Map<string, Deferred>();
  readonly #place: Scene;

  constructor(place: Scene) {
    this.#place = place;
  }

  begin(name: string, lock: Lock, options: LockOptions = {}, within?: () => unknown): Watched<string> {
    const end = deferred();
    this.#ends.set(name, end);
    return watch(
      lock.run(async () => {
        this.#inside.add(name);
        this.began.push(name);
        within?.();
        await end.promise;
        this.#inside.delete(name);
        return name;
      }, options),
    );
  }

  /** Ends a run; returns the runs that are running after that. */
  async end(name: string): Promise<string[]> {
    this.#ends.get(name)?.resolve();
    return this.now();
  }

  async now(): Promise<string[]> {
    await this.#place.settle();
    return [...this.#inside];
  }
}

const withRuns = <P extends Scene>(place: P): P & { runs: Runs } => ({ ...place, runs: new Runs(place) });

describe.each(byName(KINDS.filter(({ exclusive }) => exclusive)))("%s", (_, kind) => {
  const open = () => withRuns(sceneOf(kind));
  const test = testInScope(open);
  const testOutside = testIn(open);

  testOutside("siblings inside a run go one after the other, in the order of their calls", async (place) => {
    const { lock, runs, server } = place;
    const outer = runs.begin("outer", lock, {}, () => {
      for (const name of ["a", "b", "c"]) runs.begin(name, lock);
    });
    expect(await runs.now()).toEqual(["outer", "a"]);
    server.took();
    expect(await runs.end("a")).toEqual(["outer", "b"]);
    // Two commands: one hold is given back, and one is taken.
    expect(server.took()).toHaveLength(2);
    expect(await runs.end("b")).toEqual(["outer", "c"]);
    await runs.end("c");
    await runs.end("outer");
    expect(outer.outcome).toBe("outer");
  });

  test("siblings inside a scope do too, and never wait for a bare hold of their own owner", async (place) => {
    const { lock, runs } = place;
    const bare = await lock.lock();
    runs.begin("a", lock);
    runs.begin("b", lock);
    expect(await runs.now()).toEqual(["a"]);
    await bare.unlock();
    expect(await runs.end("a")).toEqual(["b"]);
    await runs.end("b");
  });

  test("a sibling that is called while another gives its hold back goes on with a new one", async (place) => {
    const { lock, runs, settle, a } = place;
    runs.begin("a", lock);
    await settle();
    a.keep("replies");
    await runs.end("a");
    runs.begin("b", lock);
    await settle();
    await a.letGo();
    expect(await runs.now()).toEqual(["b"]);
    await runs.end("b");
  });

  test("a nested run does not wait for its own siblings' turn, and holds them up for as long as it runs", async (place) => {
    const { lock, runs } = place;
    runs.begin("a", lock, {}, () => runs.begin("a1", lock));
    runs.begin("b", lock);
    expect(await runs.now()).toEqual(["a", "a1"]);
    expect(await runs.end("a")).toEqual(["a1"]);
    expect(await runs.end("a1")).toEqual(["b"]);
    await runs.end("b");
  });

  test("a run of another lock between them changes nothing", async ({ lock, runs, settle, a }) => {
    const other = a.client.getLock("other");
    void other.run(() => lock.run(() => runs.began.push("one")));
    void other.run(() => lock.run(() => runs.began.push("two")));
    runs.begin("a", lock);
    expect(await runs.now()).toEqual(["a"]);
    await runs.end("a");
    await settle();
    expect(runs.began.sort()).toEqual(["a", "one", "two"]);
  });

  test("one whose wait is over, or that is aborted, gives up its turn to the next", async (place) => {
    const { lock, runs, settle, advance } = place;
    const controller = new AbortController();
    runs.begin("a", lock);
    const late = runs.begin("b", lock, { wait: 1_000 });
    const aborted = runs.begin("c", lock, { signal: controller.signal });
    const none = runs.begin("e", lock, { wait: 0 });
    runs.begin("d", lock);
    await settle();
    expect(none.outcome).toBe("WAIT_TIMEOUT");
    await advance(1_000);
    expect(late.outcome).toBe("WAIT_TIMEOUT");
    controller.abort("enough");
    await settle();
    expect(aborted.outcome).toBe("enough");
    expect(await runs.end("a")).toEqual(["d"]);
    await runs.end("d");
  });

  test("the one whose turn it is gives it up by its abort while somebody else has the lock", async (place) => {
    const { lock, rival, runs, settle } = place;
    const controller = new AbortController();
    const theirs = await rival.lock();
    const first = runs.begin("a", lock, { signal: controller.signal });
    runs.begin("b", lock);
    runs.begin("c", lock);
    await settle();
    controller.abort("enough");
    await settle();
    expect(first.outcome).toBe("enough");
    await theirs.unlock();
    expect(await runs.now()).toEqual(["b"]);
    expect(await runs.end("b")).toEqual(["c"]);
    await runs.end("c");
  });

  test("siblings that wait together for another owner's lock run one after the other", async (place) => {
    const { lock, rival, runs, server } = place;
    const theirs = await rival.lock();
    for (const name of ["a", "b", "c"]) runs.begin(name, lock);
    expect(await runs.now()).toEqual([]);
    await theirs.unlock();
    expect(await runs.now()).toEqual(["a"]);
    server.took();
    expect(await runs.end("a")).toEqual(["b"]);
    // Only the next run takes the lock, and no other run asks.
    expect(server.took().length).toBeLessThanOrEqual(2);
    await runs.end("b");
    await runs.end("c");
    expect(runs.began).toEqual(["a", "b", "c"]);
  });

  test("of siblings that wait for their turn only one asks while another owner has the lock", async (place) => {
    const { lock, rival, runs, settle, server } = place;
    runs.begin("a", lock);
    await settle();
    for (const name of ["b", "c"]) runs.begin(name, lock);
    const theirs = watch(rival.lock());
    await settle();
    server.took();
    await runs.end("a");
    // One release, and two tries of each side that wants the lock.
    expect(server.took().length).toBeLessThanOrEqual(5);
    await theirs.value?.unlock();
    for (const name of ["b", "c"]) await runs.end(name);
    await theirs.value?.unlock();
  });

  test("a function that fails ends its turn likewise", async ({ lock, runs, settle }) => {
    const fails = watch(
      lock.run(() => {
        throw new Error("mine");
      }),
    );
    runs.begin("b", lock);
    await settle();
    expect(fails.error).toMatchObject({ message: "mine" });
    expect(await runs.now()).toEqual(["b"]);
    await runs.end("b");
  });

  test("a run whose hold is lost keeps its turn until its function ends", async (place) => {
    const { lock, runs, settle, advance } = place;
    const lost = runs.begin("a", lock, { lease: 1_000 });
    const next = runs.begin("b", lock);
    await advance(1_000);
    expect(await runs.now()).toEqual(["a"]);
    expect(next.outcome).toBe("pending");
    await runs.end("a");
    expect(lost.outcome).toBe("LOCK_LOST");
    expect(await runs.now()).toEqual(["b"]);
    await runs.end("b");
    await settle();
  });

  test("sibling runs of a group of locks take turns, and with runs of a member", async (place) => {
    const { lock, runs, a } = place;
    const group = new MultiLock(lock, a.client.getLock("other")) as unknown as Lock;
    runs.begin("a", group);
    runs.begin("b", group);
    runs.begin("c", lock);
    runs.begin("d", group);
    expect(await runs.now()).toEqual(["a"]);
    const left = new Set(["b", "c", "d"]);
    await runs.end("a");
    while (left.size > 0) {
      const [next, ...more] = await runs.now();
      expect(more).toEqual([]);
      expect(left.delete(next as string)).toBe(true);
      await runs.end(next as string);
    }
  });

  testOutside("runs that share no owner wait like strangers", async ({ lock, runs }) => {
    runs.begin("a", lock);
    runs.begin("b", lock);
    expect(await runs.now()).toEqual(["a"]);
    expect(await runs.end("a")).toEqual(["b"]);
    await runs.end("b");
  });

  test("a function that unlocks early gives its turn up only when it ends", async ({ lock, settle }) => {
    const ends = deferred();
    const began: string[] = [];
    const first = lock.run(async (hold) => {
      began.push("a");
      await hold.unlock();
      await ends.promise;
      began.push("a ends");
    });
    const second = lock.run(() => began.push("b"));
    await settle();
    expect(began).toEqual(["a"]);
    ends.resolve();
    await first;
    await second;
    expect(began).toEqual(["a", "a ends", "b"]);
  });
});

describe("both sides of a read-write lock", () => {
  const test = testInScope(() => withRuns(sidesOf()));

  test("sibling reads run together, a write waits for them, and reads for it", async (place) => {
    const { read, write, runs, settle } = place;
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
    await runs.end("r3");
    await runs.end("r4");
  });

  test("a read is never behind a write that only waits for its turn", async (place) => {
    const { read, write, runs, settle } = place;
    runs.begin("r1", read);
    await settle();
    runs.begin("w", write);
    await settle();
    runs.begin("r2", read);
    expect(await runs.now()).toEqual(["r1", "r2"]);
    for (const name of ["r1", "r2"]) await runs.end(name);
    expect(await runs.now()).toEqual(["w"]);
    await runs.end("w");
  });

  test("writes that are called while a read is on its way follow it in call order [B204]", async (place) => {
    const { read, write, runs } = place;
    runs.begin("r", read);
    for (const name of ["w1", "w2", "w3"]) runs.begin(name, write);
    expect(await runs.now()).toEqual(["r"]);
    expect(await runs.end("r")).toEqual(["w1"]);
    expect(await runs.end("w1")).toEqual(["w2"]);
    expect(await runs.end("w2")).toEqual(["w3"]);
    await runs.end("w3");
  });

  test("so do bare writes that are called while a read runs [B204]", async (place) => {
    const { read, write, runs, settle } = place;
    runs.begin("r", read);
    const granted: number[] = [];
    const calls = [1, 2, 3].map((n) =>
      write.lock().then((hold) => {
        granted.push(n);
        return hold;
      }),
    );
    await settle();
    expect(granted).toEqual([]);
    await runs.end("r");
    expect(granted).toEqual([1, 2, 3]);
    for (const call of calls) await (await call).unlock();
  });

  test("a write inside a read's run is refused at once, and one beside it waits", async (place) => {
    const { read, write, runs, settle } = place;
    let inside: Watched<Hold> | undefined;
    let nested: Watched<number> | undefined;
    runs.begin("r", read, {}, () => {
      inside = watch(write.lock());
      nested = watch(write.run(() => 1));
    });
    const sibling = watch(write.run(() => 2));
    await settle();
    expect(inside?.error).toMatchObject({ code: "UPGRADE_REFUSED", lockName: NAME });
    expect(nested?.outcome).toBe("UPGRADE_REFUSED");
    expect(sibling.outcome).toBe("pending");
    await runs.end("r");
    expect(sibling.outcome).toBe(2);
  });

  test("a write that waits for its turn is refused once its owner takes a bare read hold", async (place) => {
    const { read, write, runs, settle } = place;
    runs.begin("r", read);
    await settle();
    const sibling = watch(write.run(() => 2));
    await settle();
    expect(sibling.outcome).toBe("pending");
    const bare = await read.lock();
    await settle();
    expect(sibling.outcome).toBe("UPGRADE_REFUSED");
    await runs.end("r");
    await bare.unlock();
  });
});

/** Calls: whether each is part of a group's call, whether each has the turn, and which of them are resumed at once. */
plain.each([
  ["the first of those that get the lock one after the other", [false, false], [true, true], [0]],
  ["the first of them whose turn it is", [false, false], [false, true], [1]],
  ["all parts of a group's call", [true, true], [true, true], [0, 1]],
  ["a part of a group's call, and the first behind it", [true, false], [true, true], [0, 1]],
  ["the first one, and a part of a group's call behind it", [false, true], [true, true], [0, 1]],
])("%s is resumed, and nobody else until it has settled", (_, members, turn, first) => {
  const turns = new Turns();
  const resumed: number[] = [];
  const calls = members.map((isMember, i) => {
    const resume = () => void resumed.push(i);
    return { queueName: NAME, isMember, awaitsTurn: false, hasTurn: () => turn[i] === true, resume };
  });
  const offer = () => {
    for (const call of calls) if (call.awaitsTurn) turns.offer(call);
  };
  for (const call of calls) turns.await(call);
  offer();
  turns.settle({ ...(calls[0] as (typeof calls)[0]) });
  offer();
  expect(resumed).toEqual(first);
  expect(calls.map(({ awaitsTurn }) => awaitsTurn)).toEqual(calls.map((_, i) => !first.includes(i)));
});
