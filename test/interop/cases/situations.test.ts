/** Each contest in each situation, in both directions. Only messages wake the waiters, unless a situation says otherwise. */
import { describe, expect, test } from "vitest";
import { watch } from "../../support/index.js";
import { DIRECTIONS, type Party, type Side, saysNotOwner } from "../party.js";
import { type Scene, soon, withRedisson } from "../scene.js";
import { CONTESTS, type Contest, SHAPES } from "./contests.js";
import { handOver } from "./hand-over.js";

interface Play {
  readonly scene: Scene;
  readonly contest: Contest;
  readonly name: string;
  /** A party of the side that begins, and one of the side that comes after it. */
  readonly one: Party;
  readonly other: Party;
  /** Another party of that side. */
  another(as: Party): Promise<Party>;
}

interface Situation {
  title(one: Side, other: Side): string;
  fits?(contest: Contest, other: Side): boolean;
  play(play: Play): Promise<void>;
}

const LEASE = 3_000;

const SITUATIONS: readonly Situation[] = [
  {
    title: (one, other) =>
      `what ${one} has is seen by ${other}, kept from it, and handed over by message, under any name`,
    play: async ({ scene, contest, one, other }) => {
      // One rule makes the names of all keys and channels: all shapes for one kind, the plain one and a tag for the others.
      const shapes = SHAPES.filter((_, i) => contest.kind === "lock" || i === 0 || i === 3);
      for (const shape of shapes) await handOver(scene, contest, [one, other], scene.name(shape));
    },
  },
  {
    title: (one, other) =>
      `when the lease of ${one} ends, ${other} is let in without a message, and ${one} is refused its end`,
    fits: ({ leased }) => leased,
    play: async ({ contest, name, one, other }) => {
      const begun = performance.now();
      const open = await contest.shut(one, name, LEASE);
      const waiting = watch(contest.waits(other, name));
      const leave = await soon(waiting);
      expect(performance.now() - begun).toBeGreaterThan(LEASE - 50);
      await expect(open()).rejects.toSatisfy(saysNotOwner);
      await leave();
    },
  },
  {
    title: (one, other) =>
      `a waiter in ${other} that is interrupted or aborted takes no wake-up from one in ${one}`,
    // Redisson leaves an interrupted thread in the queue, and its groups do not hear of an interrupt.
    fits: ({ kind }, other) => other === "Node" || (kind !== "fair lock" && kind !== "member before a group"),
    play: async ({ contest, name, one, other, another }) => {
      const open = await contest.shut(one, name);
      const quitter = await other.parked(() => contest.waits(other, name));
      const next = await another(one);
      const waiting = await next.parked(() => contest.waits(next, name));
      await other.giveUp();
      await expect(quitter.promise).rejects.toThrow(/enough|InterruptedException/);
      await open();
      await (await soon(waiting))();
    },
  },
  {
    title: (one, other) =>
      `${other} forces what ${one} has: a waiter in ${one} is let in at once, and the holder is told`,
    fits: ({ force }) => force !== undefined,
    play: async ({ scene, contest, name, one, other, another }) => {
      const force = (side: "shuts" | "waits") => contest.force?.(other, name, side);
      const open = await contest.shut(one, name);
      const next = await another(one);
      const waiting = await next.parked(() => contest.waits(next, name));
      if (contest.kind.startsWith("writer before readers")) expect(await force("waits")).toBe(false);
      expect(await force("shuts")).toBe(true);
      const leave = await soon(waiting);
      await expect(open()).rejects.toSatisfy(saysNotOwner);
      await leave();
      expect(await force("shuts")).toBe(false);
      // Redisson leaves the keys of readers' holds to lapse.
      if (contest.kind !== "reader before writers") await scene.expectNothingLeft(name);
    },
  },
  {
    title: (one, other) => `all who wait for ${one}, in ${one} and in ${other}, are let in together`,
    fits: ({ shared = false }) => shared,
    play: async ({ contest, name, one, other, another }) => {
      const open = await contest.shut(one, name);
      const waiting = [];
      for (const as of [one, other, one, other]) {
        const party = await another(as);
        waiting.push(await party.parked(() => contest.waits(party, name)));
      }
      await open();
      for (const leave of await Promise.all(waiting.map(soon))) await leave();
      expect(await contest.seen(other, name)).toEqual(contest.whenOpen);
    },
  },
];

withRedisson("contests", (scene) => {
  describe.each(CONTESTS.map((contest) => [contest.kind, contest] as const))("%s", (_, contest) => {
    for (const { title, fits = () => true, play } of SITUATIONS) {
      for (const [one, other] of DIRECTIONS.filter(([, after]) => fits(contest, after))) {
        test(title(one, other), async ({ skip }) => {
          const { since = "0.0.0" } = contest;
          if (!scene.atLeast(since)) skip(`Redisson ${scene.version} has none; ${since} has`);
          await play({
            ...{ scene, contest, name: scene.name() },
            ...{ one: await scene.party(one), other: await scene.party(other) },
            another: ({ side }) => scene.party(side),
          });
        });
      }
    }
  });
});
