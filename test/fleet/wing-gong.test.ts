/** The search agrees with one that tries every order, and says what it knows and what it does not. */
import fc from "fast-check";
import { expect, test } from "vitest";
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
  const extend = (order: readonly Operation<C, A>[], states: readonly S[]): boolean => {
    if (states.length === 0) return false;
    const rest = history.filter((operation) => !order.includes(operation));
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
      fate: fc.constantFrom("ok", "ok", "ok", "unknown", "open"),
    })
    .map(({ caller, of: [call, answer], invoked, lasted, fate }): Operation<C, A> => {
      const ok: Outcome<A> = { kind: "ok", answer };
      const outcome: Outcome<A> = fate === "ok" ? ok : { kind: "unknown" };
      const settled = fate === "open" ? Number.POSITIVE_INFINITY : invoked + lasted;
      return { name: "x", caller, call, invoked, settled, outcome };
    });
  return fc.array(operation, { minLength: 1, maxLength: 6 });
}

const side = fc.constantFrom("read" as const, "write" as const);
const granted = fc.record(
  { granted: fc.constant(true as const), token: fc.bigInt(1n, 3n) },
  { requiredKeys: ["granted"] },
);

function lockCalls(sides: fc.Arbitrary<"read" | "write">): fc.Arbitrary<readonly [LockCall, LockAnswer]> {
  const call = <A extends LockAnswer>(what: LockCall["do"], answers: fc.Arbitrary<A>) =>
    fc.tuple(fc.record({ do: fc.constant(what), side: sides }), answers);
  const refused = fc.record({
    granted: fc.constant(false as const),
    because: fc.constantFrom("held" as const, "upgrade" as const),
  });
  const released = fc.constant({ released: true as const });
  return fc.oneof(
    call("acquire", granted),
    call("acquire", fc.constant({ granted: true as const })),
    call("acquire", refused),
    call("release", released),
    call("release", fc.constant({ released: false as const, because: "lost" as const })),
    call("expire", released),
  );
}

const permits = fc.integer({ min: 1, max: 2 });
const semaphoreCalls: fc.Arbitrary<readonly [SemaphoreCall, SemaphoreAnswer]> = fc.oneof(
  fc.tuple(fc.record({ do: fc.constant("acquire" as const), permits }), fc.record({ granted: fc.boolean() })),
  fc.tuple(
    fc.record({ do: fc.constant("release" as const), permits }),
    fc.constant({ released: true as const }),
  ),
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

test.each([
  ["mutex", () => agrees(lockCalls(fc.constant("write")), mutex)],
  ["read-write lock", () => agrees(lockCalls(side), readWriteLock)],
  ["semaphore", () => agrees(semaphoreCalls, semaphore(2))],
])("on a %s the search agrees with one through all orders", (_, compared) => compared());

const OPEN = Number.POSITIVE_INFINITY;
const CALLS = { "+": "acquire", "-": "release", x: "expire" } as const;

/** `a+0-1` is an acquire of a from 0 to 1; without an end nobody knows its outcome; `!` is a refusal, `=5` a token. */
function op(text: string): Operation<LockCall, LockAnswer> {
  const [, caller = "", what = "+", from, to, refused, token] =
    /^(\w)([-+x])(\d+)-(\d*)(!?)=?(\d*)$/.exec(text) ?? [];
  const call = { do: CALLS[what as keyof typeof CALLS] };
  const granted: LockAnswer = token ? { granted: true, token: BigInt(token) } : { granted: true };
  const answer: LockAnswer =
    what !== "+" ? { released: true } : refused ? { granted: false, because: "held" } : granted;
  const outcome: Outcome<LockAnswer> = to ? { kind: "ok", answer } : { kind: "unknown" };
  return { name: "x", caller, call, invoked: Number(from), settled: to ? Number(to) : OPEN, outcome };
}

const ops = (text: string) => text.split(" ").map(op);

test.each<[situation: string, linearizable: boolean, history: string]>([
  ["two owners one after the other", true, "a+0-1 a-2-4 b+1-3"],
  ["two owners at once", false, "a+0-1 b+2-3"],
  ["a second owner after the lease", true, "a+0-1 ax10- b+2-11"],
  ["a second owner before the lease is over", false, "a+0-1 ax10- b+2-9"],
  ["an acquire that took effect long after its caller gave up", true, "a+0- b+20-21!"],
  ["a refusal while nobody can have it", false, "a+0-1 a-2-3 b+4-5!"],
  ["a token that does not rise", false, "a+0-1=5 a-2-3 b+4-5=5"],
  ["a nested hold with another token", false, "a+0-1=5 a+2-3=6"],
  ["one of two holds given back", false, "a+0-1 a+2-3 a-4-5 b+6-7"],
])("on a mutex, that a history of %s is linearizable is %s", (_, linearizable, history) => {
  expect(checkLinearizable(ops(history), mutex).linearizable).toBe(linearizable);
});

test("a mutex has no read side", () => {
  const read = { ...op("a+0-1"), call: { do: "acquire", side: "read" } as const };
  expect(() => checkLinearizable([read], mutex)).toThrow(TypeError);
});

test("a violation names the lock, the longest way and the answer that does not fit", () => {
  const wrong = ops("a+0-1 a-2-3 b+4-5");
  const refuted = op("c+6-7");
  const verdict = checkLinearizable([{ ...op("a+0-1"), name: "fine" }, ...wrong, refuted], mutex);
  expect(verdict).toMatchObject({ linearizable: false, name: "x", longest: wrong, refuted });
});

test("a search that would take too long is undecided, and a violation elsewhere is still reported", () => {
  const crowd = Array.from({ length: 12 }, (_, i) => ({ ...op("o+0-100"), caller: `o${i}` }));
  expect(checkLinearizable(crowd, mutex, 10)).toMatchObject({ linearizable: undefined, name: "x" });
  const wrong = ops("a+0-1 b+2-3").map((it) => ({ ...it, name: "y" }));
  expect(checkLinearizable([...crowd, ...wrong], mutex, 10)).toMatchObject({
    linearizable: false,
    name: "y",
  });
});

test("a long history of a crowd takes hardly more states than it has operations", () => {
  const history = Array.from({ length: 2_000 }, (_, i) => {
    // Each call waits behind the twenty calls before it.
    const mine = ops(`o+${Math.max(0, 10 * (i - 20))}-${10 * i + 2} o-${10 * i + 4}-${10 * i + 6}`);
    const ghosts = i % 10 === 0 ? [{ ...op(`g+${10 * i}-`), caller: `ghost${i}` }] : [];
    return [...mine.map((each) => ({ ...each, caller: `o${i}` })), ...ghosts];
  }).flat();
  const verdict = checkLinearizable(history, mutex);
  expect(verdict.linearizable).toBe(true);
  expect(verdict.states).toBeLessThan(3 * history.length);
});
