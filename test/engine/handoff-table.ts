/** Each rule of the hand-over as a story: what the policy is told at which moment, and what it is to answer. */
import { expect } from "vitest";
import type { Handoff, HandoffPolicy } from "../../src/engine/handoff-policy.js";

/** Anything that decides as the policy does: the policy itself, or a mutant of it. */
export type PolicyClass = new (advertised: boolean) => HandoffPolicy;

/** The moment in milliseconds, what happens, and with what; questions end with the answer. */
type Step =
  | readonly [number, "trying" | "want" | "granted" | "notOffered"]
  | readonly [number, "tryIn" | "quiet" | "changed" | "message" | "arrived" | "backOff", number]
  | readonly [number, "offered", waiters: number, listening: boolean]
  | readonly [number, "giveBack", Handoff]
  | readonly [number, "due", number]
  | readonly [number, "active", boolean];

export interface Story {
  readonly rule: string;
  readonly advertised?: boolean;
  readonly steps: readonly Step[];
}

const passes = (times: number, at: number): Step[] =>
  Array.from({ length: times }, () => [at, "giveBack", "passLocal"]);

/** The lock came to this process; its first waiter has tried, and does not try again before it hears of something. */
const SETTLED: readonly Step[] = [
  [0, "arrived", 1],
  [0, "trying"],
  [0, "quiet", 10_000],
];

export const STORIES: readonly Story[] = [
  {
    rule: "the first waiter of a fresh queue tries at once, whatever it is told before",
    steps: [
      [0, "active", false],
      [0, "due", 0],
      [5, "changed", 20],
      [5, "due", 0],
    ],
  },
  {
    rule: "after a try the next one is due when the lock is not known to be held any more",
    steps: [
      [0, "trying"],
      [0, "due", 0],
      [10, "quiet", 30],
      [10, "due", 30],
      [25, "due", 15],
      [50, "due", 0],
    ],
  },
  {
    rule: "a scheduled try counts instead of the time for which the lock is held, and is over when it begins",
    steps: [
      [0, "trying"],
      [0, "quiet", 1_000],
      [0, "tryIn", 30],
      [10, "due", 20],
      [40, "due", 0],
      [40, "trying"],
      [40, "due", 960],
    ],
  },
  {
    rule: "a waiter that is wanted to try is due at once",
    steps: [
      [0, "trying"],
      [0, "quiet", 1_000],
      [5, "want"],
      [5, "due", 0],
    ],
  },
  {
    rule: "being wanted does not advance a scheduled try, and that is forgotten once it began",
    steps: [
      [0, "tryIn", 30],
      [0, "want"],
      [0, "due", 30],
      [0, "trying"],
      [0, "quiet", 1_000],
      [0, "want"],
      [0, "due", 0],
    ],
  },
  {
    rule: "a message calls for a try after the waiter's own backoff",
    steps: [...SETTLED, [5, "message", 7], [5, "due", 7], [9, "due", 3]],
  },
  {
    rule: "a message never postpones a scheduled try",
    steps: [...SETTLED, [5, "message", 7], [9, "message", 7], [9, "due", 3]],
  },
  {
    rule: "a message advances a scheduled try",
    steps: [...SETTLED, [5, "tryIn", 30], [6, "message", 7], [6, "due", 7]],
  },
  {
    rule: "a change while a try is due already changes nothing",
    steps: [...SETTLED, [5, "changed", 0], [5, "due", 0], [6, "changed", 9], [6, "due", 0]],
  },
  {
    rule: "a change after the scheduled moment leaves the try due",
    steps: [...SETTLED, [5, "tryIn", 3], [9, "changed", 5], [9, "due", 0]],
  },
  {
    rule: "the first hand-over in a queue that saw no arrival asks others first, and begins a streak",
    steps: [
      [5_000, "giveBack", "offer"],
      [5_000, "active", true],
      [5_000, "offered", 1, false],
      [5_900, "giveBack", "offer"],
      [6_000, "giveBack", "offer"],
      [6_001, "giveBack", "release"],
    ],
  },
  {
    rule: "an arrival begins a streak",
    steps: [
      [5_000, "arrived", 3],
      [5_000, "active", true],
      [5_001, "giveBack", "passLocal"],
    ],
  },
  {
    rule: "others are asked after as many hand-overs as waiters were there, once 8 ms are over",
    steps: [
      [0, "arrived", 3],
      ...passes(3, 9),
      [9, "giveBack", "offer"],
      [9, "offered", 2, false],
      ...passes(2, 18),
      [18, "giveBack", "offer"],
    ],
  },
  {
    rule: "within 8 ms nobody else is asked, however often the lock goes from hand to hand",
    steps: [[0, "arrived", 1], ...passes(40, 8), [8.5, "giveBack", "offer"]],
  },
  {
    rule: "others are asked after 16 hand-overs, even if more wait",
    steps: [[0, "arrived", 200], ...passes(16, 9), [9, "giveBack", "offer"]],
  },
  {
    rule: "others are asked after 16 hand-overs again when they were asked before",
    steps: [[0, "arrived", 1], [5, "offered", 200, false], ...passes(16, 14), [14, "giveBack", "offer"]],
  },
  {
    rule: "after 50 ms others are asked before each hand-over",
    steps: [
      [0, "arrived", 16],
      [50, "giveBack", "passLocal"],
      [50.5, "giveBack", "offer"],
      [50.5, "offered", 16, false],
      [100.5, "giveBack", "passLocal"],
      [101, "giveBack", "offer"],
    ],
  },
  {
    rule: "after a second the lock is released, however recently others were asked",
    steps: [
      [0, "arrived", 16],
      [995, "offered", 16, false],
      [1_000, "giveBack", "passLocal"],
      [1_000.5, "giveBack", "release"],
      [1_100, "giveBack", "release"],
    ],
  },
  {
    rule: "the next arrival begins a new second",
    steps: [
      [0, "arrived", 16],
      [1_100, "giveBack", "release"],
      [1_200, "arrived", 16],
      [1_205, "giveBack", "passLocal"],
      [2_200, "giveBack", "offer"],
      [2_201, "giveBack", "release"],
    ],
  },
  {
    rule: "without a turn of its own a process backs off for 4 ms",
    steps: [
      [0, "trying"],
      [0, "quiet", 10_000],
      [5_000, "giveBack", "offer"],
      [5_000, "offered", 1, false],
      [5_000, "backOff", 1],
      [5_000, "due", 4],
    ],
  },
  {
    rule: "a process backs off for twice its own turn",
    steps: [...SETTLED, [10, "offered", 1, false], [10, "backOff", 1], [10, "due", 20]],
  },
  {
    rule: "its own turn is what has passed since others were last asked",
    steps: [
      ...SETTLED,
      [40, "offered", 1, false],
      [50, "offered", 1, false],
      [50, "backOff", 1],
      [50, "due", 20],
    ],
  },
  {
    rule: "a process backs off for 4 ms at least",
    steps: [...SETTLED, [1.5, "offered", 1, false], [1.5, "backOff", 1], [1.5, "due", 4]],
  },
  {
    rule: "more than 4 ms are twice the turn",
    steps: [...SETTLED, [2.5, "offered", 1, false], [2.5, "backOff", 1], [2.5, "due", 5]],
  },
  {
    rule: "less than 50 ms are twice the turn",
    steps: [...SETTLED, [24, "offered", 1, false], [24, "backOff", 1], [24, "due", 48]],
  },
  {
    rule: "a process backs off for 50 ms at most",
    steps: [...SETTLED, [30, "offered", 1, false], [30, "backOff", 1], [30, "due", 50]],
  },
  {
    rule: "a waiter that the server has to know of backs off for 4 ms at most",
    advertised: true,
    steps: [...SETTLED, [30, "offered", 1, false], [30, "backOff", 1], [30, "due", 4]],
  },
  {
    rule: "a process that has not offered anything yet backs off for 4 ms",
    steps: [...SETTLED, [10, "backOff", 1], [10, "due", 4]],
  },
  {
    rule: "a process backs off for each of those ahead",
    steps: [...SETTLED, [5, "offered", 1, false], [5, "backOff", 3], [5, "due", 30]],
  },
  {
    rule: "a process backs off for 16 others at most",
    steps: [
      ...SETTLED,
      [1, "offered", 1, false],
      [1, "backOff", 16],
      [1, "due", 64],
      [1, "backOff", 200],
      [1, "due", 64],
    ],
  },
  {
    rule: "a process that never handed over backs off for nobody",
    steps: [
      [0, "trying"],
      [0, "quiet", 10_000],
      [5, "backOff", 3],
      [5, "due", 0],
      [5, "trying"],
      [6, "changed", 7],
      [6, "due", 7],
    ],
  },
  {
    rule: "each change stands for one of those ahead, and the last one calls for a try at once",
    steps: [
      ...SETTLED,
      [5, "offered", 1, false],
      [5, "backOff", 3],
      [6, "changed", 7],
      [6, "due", 20],
      [8, "changed", 7],
      [8, "due", 10],
      [10, "changed", 7],
      [10, "due", 0],
    ],
  },
  {
    rule: "who has the lock has nobody ahead any more",
    steps: [
      ...SETTLED,
      [5, "offered", 1, false],
      [5, "backOff", 3],
      [35, "trying"],
      [35, "granted"],
      [36, "changed", 7],
      [36, "due", 7],
    ],
  },
  {
    rule: "where nobody came while a process backed off, it backs off for 4 ms the next time",
    steps: [
      ...SETTLED,
      [10, "offered", 1, false],
      [10, "backOff", 1],
      [30, "offered", 1, false],
      [30, "backOff", 1],
      [30, "due", 4],
    ],
  },
  {
    rule: "where somebody came, it backs off for twice its turn the next time as well",
    steps: [
      ...SETTLED,
      [10, "offered", 1, false],
      [10, "backOff", 1],
      [15, "changed", 0],
      [20, "offered", 1, false],
      [20, "backOff", 1],
      [20, "due", 20],
    ],
  },
  {
    rule: "the message of its own offer is no news until 100 ms are over",
    steps: [...SETTLED, [10, "offered", 1, true], [11, "message", 0], [11, "due", 99], [110, "due", 0]],
  },
  {
    rule: "the message of its own offer leaves a scheduled try alone",
    steps: [
      ...SETTLED,
      [10, "offered", 1, true],
      [10, "backOff", 1],
      [12, "message", 0],
      [12, "due", 18],
      [30, "due", 0],
    ],
  },
  {
    rule: "the message of its own offer leaves a try alone that is due already",
    steps: [...SETTLED, [10, "offered", 1, true], [10, "want"], [12, "message", 0], [12, "due", 0]],
  },
  {
    rule: "the message of its own offer is nobody's turn",
    steps: [
      ...SETTLED,
      [10, "offered", 1, true],
      [10, "backOff", 2],
      [12, "message", 0],
      [12, "due", 38],
      [13, "message", 0],
      [13, "due", 20],
    ],
  },
  {
    rule: "the second message is another's",
    steps: [...SETTLED, [10, "offered", 1, true], [11, "message", 0], [12, "message", 7], [12, "due", 7]],
  },
  {
    rule: "a message just within 100 ms of an offer may be its own",
    steps: [...SETTLED, [10, "offered", 1, true], [109, "message", 7], [109, "due", 1]],
  },
  {
    rule: "a message 100 ms after an offer is another's",
    steps: [...SETTLED, [10, "offered", 1, true], [110, "message", 7], [110, "due", 7]],
  },
  {
    rule: "a process that does not listen hears nothing of its own offer",
    steps: [...SETTLED, [10, "offered", 1, false], [11, "message", 7], [11, "due", 7]],
  },
  {
    rule: "no message comes of an offer that was never made",
    steps: [...SETTLED, [10, "offered", 1, true], [11, "notOffered"], [12, "message", 7], [12, "due", 7]],
  },
];

/** @throws if the policy answers otherwise than it is to */
export function tell(Policy: PolicyClass, { advertised = false, steps }: Story): void {
  const policy = new Policy(advertised);
  for (const [i, step] of steps.entries()) {
    const where = `step ${i + 1}, after ${step[0]} ms: ${step.slice(1).join(" ")}`;
    const now = step[0];
    switch (step[1]) {
      case "trying":
      case "want":
      case "granted":
      case "notOffered":
        policy[step[1]]();
        break;
      case "backOff":
      case "tryIn":
      case "quiet":
      case "changed":
      case "message":
      case "arrived":
        policy[step[1]](step[2], now);
        break;
      case "offered":
        policy.offered(step[2], step[3], now);
        break;
      case "giveBack":
        expect(policy.giveBack(now), where).toBe(step[2]);
        break;
      case "due":
        expect(policy.due(now), where).toBeCloseTo(step[2], 6);
        break;
      case "active":
        expect(policy.active, where).toBe(step[2]);
        break;
    }
  }
}
