/** The search agrees with one that tries every order, and says what it knows and what it does not. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type LockAnswer,
  type LockCall,
  mutex,
  readWriteLock,
  type SemaphoreAnswer,
  type SemaphoreCall,
  semaphore,
} from "./specs.js";
import { checkLinearizable, type History, type Operation, type Outcome, type Spec } from "./wing-gong.js";

const RUNS = 2_000;

/** Follows the definition alone: tries all orders of all operations that may have happened. */
function isLinearizable<S, C, A>(history: History<C, A>, spec: Spec<S, C, A>): boolean {
  const operations = history.filter(({ outcome }) => outcome.kind !== "failed");
  const extend = (order: readonly Operation<C, A>[], states: readonly S[]): boolean => {
    if (states.length === 0) return false;
    const rest = operations.filter((operation) => !order.includes(operation));
    if (rest.every(({ outcome }) => outcome.kind === "unknown")) return true;
    return rest
      .filter((next) => order.every(({ invoked }) => invoked <= next.settled))
      .some((next) =>
        extend(
          [...order, next],
          states.flatMap((state) => spec.next(state, next)),
        ),
      );
  };
  return extend([], [spec.initial]);
}

const CALLERS = ["a", "b", "c"];

/** Random calls and answers; few of them fit each other by chance, so that both verdicts occur. */
function histories<C, A>(calls: fc.Arbitrary<readonly [C, A]>): fc.Arbitrary<Operation<C, A>[]> {
  const operation = fc
    .record({
      caller: fc.constantFrom(...CALLERS),
      of: calls,
      invoked: fc.nat(12),
      lasted: fc.nat(6),
      fate: fc.constantFrom("ok", "ok", "ok", "failed", "unknown", "open"),
    })
    .map(({ caller, of: [call, answer], invoked, lasted, fate }): Operation<C, A> => {
      const ok: Outcome<A> = { kind: "ok", answer };
      const outcome: Outcome<A> =
        fate === "ok" ? ok : fate === "failed" ? { kind: "failed" } : { kind: "unknown" };
      const settled = fate === "open" ? Number.POSITIVE_INFINITY : invoked + lasted;
      return { name: "x", caller, call, invoked, settled, outcome };
    });
  return fc.array(operation, { minLength: 1, maxLength: 6 });
}

const side = fc.constantFrom("read" as const, "write" as const);
const granted = fc.record(
  { token: fc.bigInt(1n, 3n), count: fc.constantFrom(1, 1, 2) },
  { requiredKeys: [] },
);

function lockCalls(sides: fc.Arbitrary<"read" | "write">): fc.Arbitrary<readonly [LockCall, LockAnswer]> {
  type Pair = readonly [LockCall, LockAnswer];
  const refused = fc.constantFrom("held" as const, "upgrade" as const);
  const unreleased = fc.constantFrom("lost" as const, "not owner" as const);
  return fc.oneof(
    fc.tuple(sides, granted).map(
      ([side, more]): Pair => [
        { do: "acquire", side },
        { granted: true, ...more },
      ],
    ),
    fc.tuple(sides, granted).map(([side]): Pair => [{ do: "acquire", side }, { granted: true }]),
    fc.tuple(sides, refused).map(
      ([side, because]): Pair => [
        { do: "acquire", side },
        { granted: false, because },
      ],
    ),
    fc.tuple(sides).map(([side]): Pair => [{ do: "release", side }, { released: true }]),
    fc.tuple(sides).map(
      ([side]): Pair => [
        { do: "release", side },
        { released: true, left: 0 },
      ],
    ),
    fc.tuple(sides, unreleased).map(
      ([side, because]): Pair => [
        { do: "release", side },
        { released: false, because },
      ],
    ),
    fc.tuple(sides).map(([side]): Pair => [{ do: "expire", side }, { ended: true }]),
    fc.tuple(sides, fc.boolean()).map(([side, held]): Pair => [{ do: "force", side }, { held }]),
    fc.tuple(sides, fc.boolean()).map(([side, held]): Pair => [{ do: "look", side }, { held }]),
    fc.tuple(sides, fc.nat(2)).map(([side, count]): Pair => [{ do: "count", side }, { count }]),
  );
}

const semaphoreCalls = fc.oneof(
  fc
    .tuple(fc.constantFrom("acquire" as const, "set" as const), fc.integer({ min: 1, max: 2 }), fc.boolean())
    .map(([what, permits, granted]): readonly [SemaphoreCall, SemaphoreAnswer] => [
      { do: what, permits },
      { granted },
    ]),
  fc
    .tuple(fc.constantFrom("release" as const, "add" as const), fc.integer({ min: 1, max: 2 }))
    .map(([what, permits]): readonly [SemaphoreCall, SemaphoreAnswer] => [
      { do: what, permits },
      { done: true },
    ]),
  fc
    .tuple(fc.constantFrom("drain" as const, "available" as const), fc.nat(2))
    .map(([what, permits]): readonly [SemaphoreCall, SemaphoreAnswer] => [{ do: what }, { permits }]),
);

function agrees<S, C, A>(calls: fc.Arbitrary<readonly [C, A]>, spec: Spec<S, C, A>): void {
  let [linearizable, refuted] = [0, 0];
  fc.assert(
    fc.property(histories(calls), (history) => {
      const verdict = checkLinearizable(history, spec);
      expect(verdict.linearizable).toBe(isLinearizable(history, spec));
      if (verdict.linearizable) linearizable++;
      else refuted++;
    }),
    { numRuns: RUNS },
  );
  // Both verdicts occur often enough.
  expect(Math.min(linearizable, refuted)).toBeGreaterThan(RUNS / 20);
}

describe("search", () => {
  test("agrees on a mutex", () => agrees(lockCalls(fc.constant("write")), mutex));
  test("on a read-write lock", () => agrees(lockCalls(side), readWriteLock));
  test("on a semaphore", () => agrees(semaphoreCalls, semaphore(2)));
  test("on a semaphore that has no number yet", () => agrees(semaphoreCalls, semaphore()));
});

/** An operation such as `a acquire 0-2`, with the usual answer of its call unless another is given. */
function op(
  caller: string,
  what: LockCall["do"],
  invoked: number,
  settled: number,
  answer?: LockAnswer,
): Operation<LockCall, LockAnswer> {
  const usual: Partial<Record<LockCall["do"], LockAnswer>> = {
    acquire: { granted: true },
    release: { released: true },
  };
  const known = answer ?? usual[what];
  const sure = known && settled !== Number.POSITIVE_INFINITY;
  const outcome: Outcome<LockAnswer> = sure ? { kind: "ok", answer: known } : { kind: "unknown" };
  return { name: "x", caller, call: { do: what }, invoked, settled, outcome };
}

const OPEN = Number.POSITIVE_INFINITY;

describe("a mutex", () => {
  test.each<[string, boolean, Operation<LockCall, LockAnswer>[]]>([
    [
      "two owners one after the other",
      true,
      [op("a", "acquire", 0, 1), op("a", "release", 2, 4), op("b", "acquire", 1, 3)],
    ],
    ["two owners at once", false, [op("a", "acquire", 0, 1), op("b", "acquire", 2, 3)]],
    [
      "a second owner after the lease",
      true,
      [op("a", "acquire", 0, 1), op("a", "expire", 10, OPEN), op("b", "acquire", 2, 11)],
    ],
    [
      "a second owner before the lease is over",
      false,
      [op("a", "acquire", 0, 1), op("a", "expire", 10, OPEN), op("b", "acquire", 2, 9)],
    ],
    [
      "an acquire that took effect long after its caller gave up",
      true,
      [op("a", "acquire", 0, OPEN), op("b", "acquire", 20, 21, { granted: false, because: "held" })],
    ],
    [
      "a refusal while nobody can have it",
      false,
      [
        op("a", "acquire", 0, 1),
        op("a", "release", 2, 3),
        op("b", "acquire", 4, 5, { granted: false, because: "held" }),
      ],
    ],
    [
      "a token that does not rise",
      false,
      [
        op("a", "acquire", 0, 1, { granted: true, token: 5n }),
        op("a", "release", 2, 3),
        op("b", "acquire", 4, 5, { granted: true, token: 5n }),
      ],
    ],
    [
      "a nested hold with another token",
      false,
      [
        op("a", "acquire", 0, 1, { granted: true, token: 5n }),
        op("a", "acquire", 2, 3, { granted: true, token: 6n }),
      ],
    ],
    [
      "one of two holds given back",
      false,
      [
        op("a", "acquire", 0, 1),
        op("a", "acquire", 2, 3),
        op("a", "release", 4, 5),
        op("b", "acquire", 6, 7),
      ],
    ],
  ])("%s: %s", (_, linearizable, history) => {
    expect(checkLinearizable(history, mutex).linearizable).toBe(linearizable);
  });

  test("has no read side", () => {
    const read = { ...op("a", "acquire", 0, 1), call: { do: "acquire", side: "read" } as const };
    expect(() => checkLinearizable([read], mutex)).toThrow(TypeError);
  });
});

test("a violation names the lock, the longest way and the answer that does not fit", () => {
  const fine = { ...op("a", "acquire", 0, 1), name: "fine" };
  const wrong = [op("a", "acquire", 0, 1), op("a", "release", 2, 3), op("b", "acquire", 4, 5)];
  const refuted = op("c", "acquire", 6, 7);
  const verdict = checkLinearizable([fine, ...wrong, refuted], mutex);
  expect(verdict).toMatchObject({ linearizable: false, name: "x", longest: wrong, refuted });
});

test("a search that would take too long is undecided, and a violation elsewhere is still reported", () => {
  const crowd = Array.from({ length: 12 }, (_, i) => op(`o${i}`, "acquire", 0, 100));
  const verdict = checkLinearizable(crowd, mutex, 10);
  expect(verdict).toMatchObject({ linearizable: undefined, name: "x" });
  const wrong = [op("a", "acquire", 0, 1), op("b", "acquire", 2, 3)].map((it) => ({ ...it, name: "y" }));
  expect(checkLinearizable([...crowd, ...wrong], mutex, 10)).toMatchObject({
    linearizable: false,
    name: "y",
  });
});

test("a long history of a crowd takes hardly more states than it has operations", () => {
  const history: Operation<LockCall, LockAnswer>[] = [];
  for (let i = 0; i < 2_000; i++) {
    // Each call waits behind the twenty calls before it.
    history.push(op(`o${i}`, "acquire", Math.max(0, 10 * (i - 20)), 10 * i + 2));
    history.push(op(`o${i}`, "release", 10 * i + 4, 10 * i + 6));
    if (i % 10 === 0) history.push(op(`ghost${i}`, "acquire", 10 * i, OPEN));
  }
  const verdict = checkLinearizable(history, mutex);
  expect(verdict.linearizable).toBe(true);
  expect(verdict.states).toBeLessThan(3 * history.length);
});
