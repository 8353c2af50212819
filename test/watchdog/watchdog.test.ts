/** The watchdog in virtual time; the test plays its rules and renewers. */
import { describe, expect, test } from "vitest";
import type { Instant } from "../../src/base/clock.js";
import { renewalInterval, retryInterval } from "../../src/base/lease.js";
import type { TimerEntry } from "../../src/watchdog/timer-heap.js";
import {
  type Renewal,
  type RenewalRules,
  type Renewer,
  Watchdog,
  type Words,
} from "../../src/watchdog/watchdog.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const NEVER = Number.POSITIVE_INFINITY;
const SLACK = 20;

interface Watched extends TimerEntry {
  readonly name: string;
  /** When it must be looked at. */
  at: number;
  /** How it is renewed when it is looked at; it is not looked at again by itself after that. */
  renewal: Renewal<Watched> | undefined;
}

/** A command on its way. */
interface Sent {
  readonly names: string[];
  answer(words: readonly number[]): Promise<void>;
  fail(error: unknown): Promise<void>;
  readonly late: (words: Words) => void;
}

class ScriptedRenewer implements Renewer {
  readonly sent: Sent[] = [];

  /** Failures that are one renewal's alone. */
  readonly ofOne = new Set<unknown>();

  isOfOne(error: unknown): boolean {
    return this.ofOne.has(error);
  }

  renew(renewals: readonly Renewal<unknown>[], late: (words: Words) => void): Promise<Words> {
    const names = (renewals as readonly Renewal<Watched>[]).map(({ watched }) => watched.name);
    return new Promise((resolve, reject) => {
      this.sent.push({
        names,
        answer: (words) => {
          resolve(words);
          return settled();
        },
        fail: (error) => {
          reject(error);
          return settled();
        },
        late,
      });
    });
  }
}

class Scene implements RenewalRules<Watched> {
  readonly clock: VirtualClock = new VirtualClock(1_000);
  readonly renewer: ScriptedRenewer = new ScriptedRenewer();
  /** The looks: the name, the time, and the time for which it was due. */
  readonly looks: [name: string, now: number, by: number][] = [];
  readonly news: [name: string, word: unknown, sent?: Instant][] = [];
  /** How often a timer was set. */
  armed = 0;
  readonly watchdog: Watchdog<Watched>;
  /** An additional action at each look. */
  onLook: (watched: Watched) => void = () => undefined;

  constructor() {
    const { clock } = this;
    this.watchdog = new Watchdog<Watched>(
      {
        clock,
        slack: SLACK,
        groupOf: (key) => Number(key.split("/")[0]),
        outside: (fn) => {
          this.armed++;
          fn();
        },
      },
      this,
    );
  }

  /** Watches something that is due for a look in `ms`. */
  watch(name: string, ms: number, renewed?: { slot?: number; renewer?: Renewer }): Watched {
    const at = this.clock.mono() + ms;
    const watched: Watched = { name, at, renewal: undefined, dueAt: 0, index: -1 };
    if (renewed) {
      const { slot = 0, renewer = this.renewer } = renewed;
      watched.renewal = { watched, renewer, key: `${slot}/${name}`, field: name, extraKeys: [] };
    }
    this.watchdog.watch(watched);
    return watched;
  }

  nextDue(watched: Watched): number {
    return watched.at;
  }

  due(watched: Watched, by: number): readonly Renewal<Watched>[] {
    this.looks.push([watched.name, this.clock.mono(), by]);
    watched.at = NEVER;
    this.onLook(watched);
    return watched.renewal ? [watched.renewal] : [];
  }

  renewed({ watched }: Renewal<Watched>, word: number, sent: Instant): void {
    this.news.push([watched.name, word, sent]);
  }

  notRenewed({ watched }: Renewal<Watched>, cause: unknown): void {
    this.news.push([watched.name, cause]);
  }

  renewedLate({ watched }: Renewal<Watched>, sent: Instant): void {
    this.news.push([watched.name, "late", sent]);
  }
}

describe("what is due", () => {
  test("is looked at in the order of its times, each at its own", async () => {
    const scene = new Scene();
    scene.watch("c", 300);
    scene.watch("a", 100);
    scene.watch("b", 200);
    await scene.clock.advance(1_000);
    expect(scene.looks.map(([name, now]) => [name, now])).toEqual([
      ["a", 1_100],
      ["b", 1_200],
      ["c", 1_300],
    ]);
    expect(scene.clock.timers).toBe(0);
  });

  test("within the slack is looked at together, in order, as of its end", async () => {
    const scene = new Scene();
    scene.watch("late", SLACK + 101);
    scene.watch("second", SLACK + 100);
    scene.watch("first", 100);
    await scene.clock.advance(100);
    expect(scene.looks).toEqual([
      ["first", 1_100, 1_100 + SLACK],
      ["second", 1_100, 1_100 + SLACK],
    ]);
    await scene.clock.advance(SLACK + 1);
    expect(scene.looks).toHaveLength(3);
  });

  test("is looked at on whole milliseconds, never before its time", async () => {
    const scene = new Scene();
    scene.watch("a", 99.5);
    await scene.clock.advance(99.9);
    expect(scene.looks).toEqual([]);
    await scene.clock.advance(0.1);
    expect(scene.looks).toHaveLength(1);
  });

  test("already is looked at at once", async () => {
    const scene = new Scene();
    scene.watch("a", -50);
    await scene.clock.advance(0);
    expect(scene.looks).toHaveLength(1);
  });

  test("is looked at again whenever its rules say so", async () => {
    const scene = new Scene();
    scene.onLook = (watched) => {
      if (scene.looks.length < 3) watched.at = scene.clock.mono() + 70;
    };
    scene.watch("a", 100);
    await scene.clock.advance(1_000);
    expect(scene.looks.map(([, now]) => now)).toEqual([1_100, 1_170, 1_240]);
    expect(scene.clock.timers).toBe(0);
  });

  test("never is not watched any more", async () => {
    const scene = new Scene();
    const watched = scene.watch("a", 100);
    watched.at = NEVER;
    scene.watchdog.watch(watched);
    await scene.clock.advance(1_000);
    expect(scene.looks).toEqual([]);
    expect(scene.clock.timers).toBe(0);
    // The watchdog does not keep it either.
    expect(watched.index).toBe(-1);
  });

  test("may be moved, to an earlier time or a later one", async () => {
    const scene = new Scene();
    const [one, two] = [scene.watch("one", 100), scene.watch("two", 200)];
    one.at = 1_400;
    scene.watchdog.watch(one);
    two.at = 1_050;
    scene.watchdog.watch(two);
    await scene.clock.advance(1_000);
    expect(scene.looks.map(([name, now]) => [name, now])).toEqual([
      ["two", 1_050],
      ["one", 1_400],
    ]);
  });

  test("late, because the process stood still, is all looked at when it goes on", async () => {
    const scene = new Scene();
    for (const [i, name] of ["a", "b", "c"].entries()) scene.watch(name, 100 * (i + 1));
    scene.watch("d", 9_000);
    scene.clock.moveTo(6_000);
    scene.clock.fire();
    expect(scene.looks.map(([name, now]) => [name, now])).toEqual([
      ["a", 6_000],
      ["b", 6_000],
      ["c", 6_000],
    ]);
    await scene.clock.advance(4_000);
    expect(scene.looks).toHaveLength(4);
  });
});

describe("the timer", () => {
  test("is one for all, and is set anew only for what is due before it", () => {
    const scene = new Scene();
    for (const ms of [500, 600, 700, 400, 450]) {
      scene.watch(`${ms}`, ms);
      expect(scene.clock.timers).toBe(1);
    }
    expect(scene.armed).toBe(2);
  });

  test("that finds nothing due any more is set for the next", async () => {
    const scene = new Scene();
    const first = scene.watch("first", 100);
    scene.watch("second", 500);
    first.at = NEVER;
    scene.watchdog.watch(first);
    await scene.clock.advance(100);
    expect(scene.looks).toEqual([]);
    expect(scene.clock.timers).toBe(1);
    await scene.clock.advance(400);
    expect(scene.looks.map(([name]) => name)).toEqual(["second"]);
  });

  test("was never there, if nothing was watched", () => {
    const scene = new Scene();
    scene.watchdog.close();
    expect(scene.clock.timers).toBe(0);
  });

  test("is gone when the watchdog is closed, with all that it watches", async () => {
    const scene = new Scene();
    const watched = [scene.watch("a", 100), scene.watch("b", 200)];
    scene.watchdog.close();
    expect(scene.clock.timers).toBe(0);
    expect(watched.map(({ index }) => index)).toEqual([-1, -1]);
    await scene.clock.advance(1_000);
    expect(scene.looks).toEqual([]);
  });
});

describe("renewals", () => {
  test("of one renewer and one slot travel together, 100 to a command", async () => {
    const scene = new Scene();
    for (let i = 0; i < 250; i++) scene.watch(`${i}`, 100, {});
    await scene.clock.advance(100);
    expect(scene.renewer.sent.map(({ names }) => names.length)).toEqual([100, 100, 50]);
    const names = scene.renewer.sent.flatMap((sent) => sent.names);
    expect(new Set(names).size).toBe(250);
  });

  test("of different slots or renewers do not share a command", async () => {
    const scene = new Scene();
    const other = new ScriptedRenewer();
    scene.watch("a", 100, { slot: 1 });
    scene.watch("b", 101, { slot: 2 });
    scene.watch("c", 102, { slot: 1 });
    scene.watch("d", 103, { slot: 1, renewer: other });
    scene.watch("e", 104, { slot: 2, renewer: other });
    await scene.clock.advance(100);
    expect(scene.renewer.sent.map(({ names }) => names)).toEqual([["a", "c"], ["b"]]);
    expect(other.sent.map(({ names }) => names)).toEqual([["d"], ["e"]]);
  });

  test("of 150 in each of two slots are two commands each", async () => {
    const scene = new Scene();
    for (let i = 0; i < 300; i++) scene.watch(`${i}`, 100, { slot: i % 2 });
    await scene.clock.advance(100);
    const sizes = scene.renewer.sent.map(({ names }) => names.length);
    expect(sizes.sort((a, b) => a - b)).toEqual([50, 50, 100, 100]);
  });

  test("tell the rules the server's word on each, and when they were sent", async () => {
    const scene = new Scene();
    for (const name of ["a", "b", "c"]) scene.watch(name, 100, {});
    await scene.clock.advance(100);
    const sent = { mono: 1_100, wall: scene.clock.wall() };
    await scene.clock.advance(30);
    const [command] = scene.renewer.sent;
    const words = new Map([
      ["a", 1],
      ["b", -1],
      ["c", 0],
    ]);
    await command?.answer(command.names.map((name) => words.get(name) as number));
    expect([...scene.news].sort(([a], [b]) => a.localeCompare(b))).toEqual([
      ["a", 1, sent],
      ["b", -1, sent],
      ["c", 0, sent],
    ]);
  });

  test("that the server says nothing of are gone", async () => {
    const scene = new Scene();
    scene.watch("a", 100, {});
    await scene.clock.advance(100);
    await scene.renewer.sent[0]?.answer([]);
    expect(scene.news).toMatchObject([["a", 0, { mono: 1_100 }]]);
  });

  test("that may have failed for one of them are sent anew, each alone [B244]", async () => {
    const scene = new Scene();
    for (const name of ["a", "b"]) scene.watch(name, 100, { slot: 1 });
    await scene.clock.advance(100);
    const cause = new Error("forbidden");
    scene.renewer.ofOne.add(cause);
    await scene.renewer.sent[0]?.fail(cause);
    expect(scene.renewer.sent.slice(1).map(({ names }) => names)).toEqual([["a"], ["b"]]);
    expect(scene.news).toEqual([]);
    await scene.renewer.sent[1]?.answer([1]);
    await scene.renewer.sent[2]?.fail(cause);
    expect(scene.news).toMatchObject([
      ["a", 1, { mono: 1_100 }],
      ["b", cause],
    ]);
    expect(scene.renewer.sent).toHaveLength(3);
  });

  test("that are answered late are told to the rules if they were renewed, and no others are", async () => {
    const scene = new Scene();
    for (const name of ["a", "b", "c"]) scene.watch(name, 100, { slot: 1 });
    await scene.clock.advance(100);
    const [sent] = scene.renewer.sent;
    await sent?.fail(new Error("no answer"));
    scene.news.splice(0);
    await scene.clock.advance(50);
    const words: Record<string, number> = { a: 0, b: 1, c: -1 };
    sent?.late(sent.names.map((name) => words[name] ?? 0));
    expect(scene.news).toMatchObject([["b", "late", { mono: 1_100 }]]);
  });

  test("without an answer are told to the rules, each, and no other command is", async () => {
    const scene = new Scene();
    scene.watch("a", 100, { slot: 1 });
    scene.watch("b", 100, { slot: 1 });
    scene.watch("c", 100, { slot: 2 });
    await scene.clock.advance(100);
    const cause = new Error("gone");
    const [failing, other] = scene.renewer.sent;
    await failing?.fail(cause);
    expect([...scene.news].sort(([a], [b]) => a.localeCompare(b))).toEqual([
      ["a", cause],
      ["b", cause],
    ]);
    await other?.answer([1]);
    expect(scene.news).toHaveLength(3);
  });

  test("may be many for one that is watched, and none", async () => {
    const scene = new Scene();
    scene.watch("none", 100);
    const several = scene.watch("several", 100, {});
    const due = scene.due.bind(scene);
    scene.due = (watched, by) => due(watched, by).flatMap((each) => [each, { ...each, field: "other" }]);
    await scene.clock.advance(100);
    expect(scene.renewer.sent.map(({ names }) => names)).toEqual([[several.name, several.name]]);
  });
});

test("a lease is renewed three times in its time; a renewal that failed is tried again ten times as soon", () => {
  expect(renewalInterval(30_000)).toBe(10_000);
  expect(retryInterval(30_000)).toBe(1_000);
});
