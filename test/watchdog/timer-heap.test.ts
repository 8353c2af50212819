/** The heap of due times, compared with an array that is sorted at each look. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type TimerEntry, TimerHeap } from "../../src/watchdog/timer-heap.js";

interface Named extends TimerEntry {
  readonly name: number;
}

const ENTRIES = 40;

/** The steps for an entry: a new time, or nothing to remove it. */
const steps = fc.array(
  fc.tuple(fc.nat(ENTRIES - 1), fc.option(fc.integer({ min: 0, max: 30 }), { nil: undefined })),
  { maxLength: 200 },
);

function entries(): Named[] {
  return Array.from({ length: ENTRIES }, (_, name) => ({ name, dueAt: 0, index: -1 }));
}

describe("the timer heap", () => {
  test("has the same first entry as a sorted array, whatever comes, moves and goes", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const heap = new TimerHeap<Named>();
        const model = new Map<Named, number>();
        const named = entries();
        for (const [name, dueAt] of all) {
          const entry = named[name] as Named;
          if (dueAt === undefined) {
            heap.remove(entry);
            model.delete(entry);
          } else {
            heap.put(entry, dueAt);
            model.set(entry, dueAt);
          }
          const [earliest] = [...model.values()].sort((a, b) => a - b);
          expect(heap.first?.dueAt).toBe(earliest);
          expect(new Set(heap)).toEqual(new Set(model.keys()));
          for (const each of named) expect(each.index >= 0).toBe(model.has(each));
        }
      }),
    );
  });

  test("gives everything in the order of its times", () => {
    fc.assert(
      fc.property(fc.array(fc.integer(), { maxLength: 100 }), (times) => {
        const heap = new TimerHeap<Named>();
        for (const [name, dueAt] of times.entries()) heap.put({ name, dueAt: 0, index: -1 }, dueAt);
        const seen: number[] = [];
        for (let { first } = heap; first; first = heap.first) {
          seen.push(first.dueAt);
          heap.remove(first);
          expect(first.index).toBe(-1);
        }
        expect(seen).toEqual([...times].sort((a, b) => a - b));
      }),
    );
  });

  test("may be emptied while it is gone through", () => {
    const heap = new TimerHeap<Named>();
    for (const [i, entry] of entries().entries()) heap.put(entry, i % 7);
    for (const entry of heap) heap.remove(entry);
    expect(heap.first).toBeUndefined();
  });
});
