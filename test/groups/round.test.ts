/** When a round of a RedLock is decided, in virtual time: each master answers after so many milliseconds. */
import { expect, test } from "vitest";
import type { Members } from "../../src/groups/members.js";
import { votesOf } from "../../src/groups/round.js";
import { VirtualClock } from "../support/virtual-clock.js";

const NEVER = Number.POSITIVE_INFINITY;
type Answer = readonly [after: number, says: "yes" | "no"];

class Servers {
  readonly clock = new VirtualClock();
  readonly members: Members;
  readonly #masters: { lagging: boolean }[];

  constructor(count: number) {
    this.#masters = Array.from({ length: count }, () => ({ lagging: false }));
    const runner = { servers: { isUnresponsive: () => false } };
    const all = this.#masters.map((masters) => ({ env: { masters, runner }, backend: { key: "k" } }));
    this.members = { all, quorum: Math.floor(count / 2) + 1, clock: this.clock } as unknown as Members;
  }

  get lagging(): number[] {
    return this.#masters.flatMap(({ lagging }, i) => (lagging ? [i] : []));
  }

  /** Plays a round: when it was decided, and by whose votes. */
  async round(answers: readonly Answer[]): Promise<{ at: number; by: number[] }> {
    const begun = this.clock.mono();
    const votes = answers.map(
      ([after, says]) =>
        new Promise((resolve) => {
          const vote = says === "yes" ? { granted: true, value: {} } : { granted: false, ttl: 5 };
          if (after !== NEVER) this.clock.after(after, () => resolve(vote));
        }),
    );
    let decided: { at: number; by: number[] } | undefined;
    void votesOf(this.members, votes as Parameters<typeof votesOf>[1]).then((result) => {
      const by = result.flatMap((vote, i) => (vote ? [i] : []));
      decided = { at: this.clock.mono() - begun, by };
    });
    await this.clock.advance(1_000);
    return decided ?? { at: NEVER, by: [] };
  }
}

const yes = (...after: number[]): Answer[] => after.map((ms) => [ms, "yes"]);

test.each([
  ["all answer alike", yes(10, 10, 10), { at: 10, by: [0, 1, 2] }],
  ["the last one keeps up with the majority", yes(10, 12, 20), { at: 20, by: [0, 1, 2] }],
  ["the last one does not: as long again as the majority took", yes(10, 12, 60), { at: 25, by: [0, 1] }],
  ["one never answers", yes(NEVER, 3, 4), { at: 9, by: [1, 2] }],
  ["two of five are late", yes(4, 4, 4, 90, NEVER), { at: 9, by: [0, 1, 2] }],
  ["no majority is possible any more", [...yes(1), [2, "no"], [3, "no"]], { at: 3, by: [0, 1, 2] }],
  ["refused by a majority while one is silent", [...yes(NEVER), [2, "no"], [3, "no"]], { at: 3, by: [1, 2] }],
] as const)("%s", async (_, answers, decided) => {
  const servers = new Servers(answers.length);
  expect(await servers.round(answers)).toEqual(decided);
  expect(servers.clock.timers).toBe(0);
});

test("a laggard is waited for once, and again when it keeps up", async () => {
  const servers = new Servers(3);
  expect(await servers.round(yes(10, 10, 60))).toEqual({ at: 21, by: [0, 1] });
  expect(servers.lagging).toEqual([2]);
  expect(await servers.round(yes(10, 10, 60))).toEqual({ at: 10, by: [0, 1] });
  // In time, though nobody waited for it.
  expect(await servers.round(yes(10, 10, 15))).toEqual({ at: 10, by: [0, 1] });
  expect(servers.lagging).toEqual([]);
  expect(await servers.round(yes(10, 10, 15))).toEqual({ at: 15, by: [0, 1, 2] });
});
