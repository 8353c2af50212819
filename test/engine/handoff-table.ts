/** Each rule of the hand-over as a story: what the policy is told at each moment, and what it must answer. */
import { expect } from "vitest";
import type { Handoff, HandoffPolicy } from "../../src/engine/handoff-policy.js";

/** Anything that decides like the policy: the policy itself, or a mutant of it. */
export type PolicyClass = new (advertised: boolean) => HandoffPolicy;

/** The moment in milliseconds, the method, and its argument; for a question, the expected answer. */
type Step =
  | readonly [number, "trying" | "want" | "granted" | "arrived" | "unannounced"]
  | readonly [number, "tryIn" | "quiet" | "changed" | "message" | "backOff", number]
  | readonly [number, "giveBack", Handoff, "listening"?]
  | readonly [number, "due", number]
  | readonly [number, "active" | "backsOff", boolean];

export interface Story {
  readonly rule: string;
  readonly advertised?: boolean;
  readonly steps: readonly Step[];
}

const passes = (times: number, at: number): Step[] =>
  Array.from({ length: times }, () => [at, "giveBack", "passLocal"]);

/** The lock came to this process; its first waiter has tried, and tries again only after a message or a change. */
const SETTLED: readonly Step[] = [
  [0, "arrived"],
  [0, "trying"],
  [0, "quiet", 10_000],
];

/** The lock was offered to others after 10 ms. */
const OFFERED: readonly Step[] = [...SETTLED, ...passes(4, 10), [10, "giveBack", "offer"]];
/** The same, and this process listens, so it will hear of the offer. */
const LISTENING: readonly Step[] = [...SETTLED, ...passes(4, 10), [10, "giveBack", "offer", "listening"]];

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
    rule: "the first hand-over in a queue that saw no arrival asks others first, and begins a stay",
    steps: [
      [5_000, "giveBack", "offer"],
      [5_000, "active", true],
      [5_000, "giveBack", "passLocal"],
      [5_900, "giveBack", "offer"],
      [6_000, "giveBack", "offer"],
      [6_001, "giveBack", "release"],
    ],
  },
  {
    rule: "an arrival begins a stay",
    steps: [
      [5_000, "arrived"],
      [5_000, "active", true],
      [5_001, "giveBack", "passLocal"],
    ],
  },
  {
    rule: "others are asked after four hand-overs, once 8 ms are over",
    steps: [
      [0, "arrived"],
      ...passes(4, 9),
      [9, "giveBack", "offer"],
      ...passes(4, 18),
      [18, "giveBack", "offer"],
    ],
  },
  {
    rule: "within 8 ms nobody else is asked, however often the lock goes from hand to hand",
    steps: [[0, "arrived"], ...passes(40, 8), [8.5, "giveBack", "offer"]],
  },
  {
    rule: "after 50 ms others are asked before each hand-over",
    steps: [
      [0, "arrived"],
      [50, "giveBack", "passLocal"],
      [50.5, "giveBack", "offer"],
      [100.5, "giveBack", "passLocal"],
      [101, "giveBack", "offer"],
    ],
  },
  {
    rule: "after a second the lock is released, however recently others were asked",
    steps: [
      [0, "arrived"],
      [995, "giveBack", "offer"],
      [1_000, "giveBack", "passLocal"],
      [1_000.5, "giveBack", "release"],
      [1_100, "giveBack", "release"],
    ],
  },
  {
    rule: "the next arrival begins a new second",
    steps: [
      [0, "arrived"],
      [1_100, "giveBack", "release"],
      [1_200, "arrived"],
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
      [5_000, "backsOff", false],
      [5_000, "backOff", 1],
      [5_000, "backsOff", true],
      [5_000, "due", 4],
    ],
  },
  {
    rule: "a process backs off for twice its own turn",
    steps: [...SETTLED, ...passes(4, 10), [10, "giveBack", "offer"], [10, "backOff", 1], [10, "due", 20]],
  },
  {
    rule: "at a release it is 4 ms, however long the turn was",
    steps: [
      [0, "giveBack", "offer"],
      [0, "trying"],
      [0, "quiet", 10_000],
      [990, "giveBack", "offer"],
      [1_001, "giveBack", "release"],
      [1_001, "backOff", 1],
      [1_001, "due", 4],
    ],
  },
  {
    rule: "its own turn is what has passed since others were last asked",
    steps: [
      ...SETTLED,
      [60, "giveBack", "offer"],
      ...passes(4, 70),
      [70, "giveBack", "offer"],
      [70, "backOff", 1],
      [70, "due", 20],
    ],
  },
  {
    rule: "a process backs off for 4 ms at least",
    steps: [
      ...SETTLED,
      [999.5, "giveBack", "offer"],
      [1_001, "giveBack", "release"],
      [1_001, "backOff", 1],
      [1_001, "due", 4],
    ],
  },
  {
    rule: "less than 50 ms are twice the turn",
    steps: [...SETTLED, ...passes(4, 24), [24, "giveBack", "offer"], [24, "backOff", 1], [24, "due", 48]],
  },
  {
    rule: "a process backs off for 50 ms at most",
    steps: [...SETTLED, ...passes(4, 30), [30, "giveBack", "offer"], [30, "backOff", 1], [30, "due", 50]],
  },
  {
    rule: "a waiter that the server has to know of backs off for 4 ms at most",
    advertised: true,
    steps: [...SETTLED, ...passes(4, 30), [30, "giveBack", "offer"], [30, "backOff", 1], [30, "due", 4]],
  },
  {
    rule: "a process that has not offered anything yet backs off for 4 ms",
    steps: [...SETTLED, [10, "backOff", 1], [10, "due", 4]],
  },
  {
    rule: "a process backs off for each of those ahead",
    steps: [...OFFERED, [10, "backOff", 3], [10, "due", 60]],
  },
  {
    rule: "however many others go first, a process backs off for a second at most",
    steps: [
      ...OFFERED,
      [10, "backOff", 200],
      [10, "due", 1_000],
      [11, "changed", 0],
      [11, "due", 1_000],
      [11, "backOff", 50],
      [11, "due", 1_000],
      [11, "backOff", 49],
      [11, "due", 980],
    ],
  },
  {
    rule: "each change stands for one of those ahead, and the last one calls for a try at once",
    steps: [
      ...OFFERED,
      [10, "backOff", 3],
      [11, "changed", 7],
      [11, "due", 40],
      [13, "changed", 7],
      [13, "due", 20],
      [15, "changed", 7],
      [15, "due", 0],
    ],
  },
  {
    rule: "who has the lock has nobody ahead any more",
    steps: [
      ...OFFERED,
      [10, "backOff", 3],
      [70, "trying"],
      [70, "backsOff", true],
      [70, "granted"],
      [70, "backsOff", false],
      [71, "changed", 7],
      [71, "due", 7],
    ],
  },
  {
    rule: "where nobody came while a process backed off, it backs off for 4 ms the next time",
    steps: [
      ...OFFERED,
      [10, "backOff", 1],
      ...passes(4, 30),
      [30, "giveBack", "offer"],
      [30, "backOff", 1],
      [30, "due", 4],
    ],
  },
  {
    rule: "where somebody came, it backs off for twice its turn the next time as well",
    steps: [
      ...OFFERED,
      [10, "backOff", 1],
      [15, "changed", 0],
      ...passes(4, 20),
      [20, "giveBack", "offer"],
      [20, "backOff", 1],
      [20, "due", 20],
    ],
  },
  {
    rule: "the message of its own offer is no news until 100 ms are over",
    steps: [...LISTENING, [11, "message", 0], [11, "due", 99], [110, "due", 0]],
  },
  {
    rule: "the message of its own offer leaves a scheduled try alone",
    steps: [...LISTENING, [10, "backOff", 1], [12, "message", 0], [12, "due", 18], [30, "due", 0]],
  },
  {
    rule: "the message of its own offer leaves a try alone that is due already",
    steps: [...LISTENING, [10, "want"], [12, "message", 0], [12, "due", 0]],
  },
  {
    rule: "the message of its own offer is nobody's turn",
    steps: [
      ...LISTENING,
      [10, "backOff", 2],
      [12, "message", 0],
      [12, "due", 38],
      [13, "message", 0],
      [13, "due", 20],
    ],
  },
  {
    rule: "the second message is another's",
    steps: [...LISTENING, [11, "message", 0], [12, "message", 7], [12, "due", 7]],
  },
  {
    rule: "a message just within 100 ms of an offer may be its own",
    steps: [...LISTENING, [109, "message", 7], [109, "due", 1]],
  },
  {
    rule: "a message 100 ms after an offer is another's",
    steps: [...LISTENING, [110, "message", 7], [110, "due", 7]],
  },
  {
    rule: "the message of its own release is no news either",
    steps: [
      ...SETTLED,
      [1_001, "giveBack", "release", "listening"],
      [1_002, "message", 0],
      [1_002, "due", 99],
    ],
  },
  {
    rule: "what is passed without an offer is not announced",
    steps: [...SETTLED, [1, "giveBack", "passLocal", "listening"], [2, "message", 7], [2, "due", 7]],
  },
  {
    rule: "what was lost before it could be offered was not announced",
    steps: [...LISTENING, [11, "unannounced"], [12, "message", 7], [12, "due", 7]],
  },
  {
    rule: "a process that does not listen hears nothing of its own offer",
    steps: [...OFFERED, [11, "message", 7], [11, "due", 7]],
  },
];

/** @throws if the policy gives another answer than the story expects */
export function tell(Policy: PolicyClass, { advertised = false, steps }: Story): void {
  const policy = new Policy(advertised);
  for (const [i, step] of steps.entries()) {
    const where = `step ${i + 1}, after ${step[0]} ms: ${step.slice(1).join(" ")}`;
    const now = step[0];
    switch (step[1]) {
      case "trying":
      case "want":
      case "granted":
      case "unannounced":
        policy[step[1]]();
        break;
      case "backOff":
      case "tryIn":
      case "quiet":
      case "changed":
      case "message":
        policy[step[1]](step[2], now);
        break;
      case "arrived":
        policy.arrived(now);
        break;
      case "giveBack":
        expect(policy.giveBack(step[3] === "listening", now), where).toBe(step[2]);
        break;
      case "due":
        expect(policy.due(now), where).toBeCloseTo(step[2], 6);
        break;
      case "active":
      case "backsOff":
        expect(policy[step[1]], where).toBe(step[2]);
        break;
    }
  }
}
