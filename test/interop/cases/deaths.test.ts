/** A process of either side is killed, or stands still, while it holds one of each and awaits one of each. */
import { expect, test } from "vitest";
import { PATIENCE, SLACK } from "../../support/index.js";
import { DIRECTIONS, type Side, saysNotOwner } from "../party.js";
import { soon, withRedisson } from "../scene.js";
import { CONTESTS, type Contest } from "./contests.js";
import { mortals } from "./mortals.js";

/** Milliseconds after which the holds of a dead process end. */
const TERM = 4_500;
const LONG = { timeout: 6 * PATIENCE };

const mortal = mortals();

withRedisson("deaths", (scene) => {
  const those = (fits: (contest: Contest) => boolean = () => true) =>
    CONTESTS.filter((contest) => fits(contest) && scene.atLeast(contest.since ?? "0.0.0"));
  const leased = () => those((contest) => contest.leased);

  /** A new party of that side waits for it. */
  async function awaited(contest: Contest, name: string, side: Side) {
    const party = await scene.party(side);
    return party.parked(() => contest.waits(party, name));
  }

  /** The names of what is shut, one of each, and what waits for them on that side. */
  async function shutAll(shut: (contest: Contest, name: string) => Promise<unknown>, side: Side) {
    const held = leased().map((contest) => ({ contest, name: scene.name() }));
    for (const { contest, name } of held) await shut(contest, name);
    const waiting = [];
    for (const { contest, name } of held) waiting.push(await awaited(contest, name, side));
    return waiting;
  }

  test.each(DIRECTIONS)(
    "a process of %s is killed: what it held goes to %s when its leases end, and what it awaited goes on without it",
    LONG,
    async (one, other) => {
      const doomed = await mortal(scene, one, { watchdogTimeout: TERM });
      const wanted = [];
      // A dead waiter's place in a queue is another matter.
      for (const contest of those(({ kind }) => kind !== "fair lock")) {
        const name = scene.name();
        const open = await contest.shut(await scene.party(other), name);
        await doomed.waits(contest, name);
        wanted.push({ contest, name, open });
      }
      const waiting = await shutAll((contest, name) => doomed.shut(contest, name), other);
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

  test("a JVM stands still past its leases: Node is let in, and Java is refused its ends", LONG, async () => {
    const jvm = scene.newJvm();
    const java = await scene.newJava({ watchdog: TERM }, jvm);
    const ends: (() => Promise<unknown>)[] = [];
    const shut = async (contest: Contest, name: string) => {
      ends.push(
        await contest.shut(await scene.thread(java), name, contest.kind === "permits" ? TERM : undefined),
      );
    };
    const waiting = await shutAll(shut, "Node");
    jvm.pause();
    const leave = await Promise.all(waiting.map(soon));
    jvm.resume();
    for (const end of ends) await expect(end()).rejects.toSatisfy(saysNotOwner);
    for (const end of leave) await end();
  });
});
