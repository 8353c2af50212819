/** A process of either side is killed while it holds one of each and awaits one of each. */
import { expect, test } from "vitest";
import { PATIENCE, SLACK } from "../../support/index.js";
import { DIRECTIONS, type Side } from "../party.js";
import { soon, withRedisson } from "../scene.js";
import { CONTESTS, type Contest } from "./contests.js";
import { mortals } from "./mortals.js";

/** Milliseconds after which the holds of a dead process end. */
const TERM = 4_500;
const LONG = { timeout: 6 * PATIENCE };

const mortal = mortals();

withRedisson("deaths", (scene) => {
  const there = CONTESTS.filter(({ since = "0.0.0" }) => scene.atLeast(since));

  /** A new party of that side waits for it. */
  async function awaited(contest: Contest, name: string, side: Side) {
    const party = await scene.party(side);
    return party.parked(() => contest.waits(party, name));
  }

  test.each(DIRECTIONS)(
    "a process of %s is killed: what it held goes to %s when its leases end, and what it awaited goes on without it",
    LONG,
    async (one, other) => {
      const doomed = await mortal(scene, one, { watchdogTimeout: TERM });
      const wanted = [];
      // A dead waiter's place in a queue is another matter.
      for (const contest of there.filter(({ kind }) => kind !== "fair lock")) {
        const name = scene.name();
        const open = await contest.shut(await scene.party(other), name);
        await doomed.waits(contest, name);
        wanted.push({ contest, name, open });
      }
      const held = there
        .filter((contest) => contest.leased)
        .map((contest) => ({ contest, name: scene.name() }));
      for (const { contest, name } of held) await doomed.shut(contest, name);
      const waiting = [];
      for (const { contest, name } of held) waiting.push(await awaited(contest, name, other));
      await doomed.kill();
      const killed = performance.now();
      for (const { contest, name, open } of wanted) {
        const next = await awaited(contest, name, other);
        await open();
        await (
          await soon(next).catch((cause: unknown) => {
            throw new Error(`${contest.kind}: its waiter waits still`, { cause });
          })
        )();
      }
      for (const call of waiting) await (await soon(call))();
      for (const call of waiting) expect(call.took).toBeLessThan(performance.now() - killed + TERM + SLACK);
    },
  );
});
