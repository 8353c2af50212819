/** One queue of a fair lock for both sides: who is next, who leaves, and whose place lapses. */
import { expect, test } from "vitest";
import { fairQueue } from "../../../src/base/names.js";
import { PATIENCE, SLACK, STEADY, until, type Watched } from "../../support/index.js";
import { type LockCalls, NEVER } from "../calls.js";
import { DIRECTIONS, type Party, type Side } from "../party.js";
import { type PartyOptions, soon, withRedisson } from "../scene.js";
import { CONTESTS, type Contest } from "./contests.js";
import { mortals } from "./mortals.js";

const FAIR = CONTESTS.find(({ kind }) => kind === "fair lock") as Contest;
/** Milliseconds that a place outlasts the one before it, where it is told. */
const GRACE = 2_500;
const WAIT = 2_000;

const mortal = mortals();

interface Turn {
  readonly lock: LockCalls;
  readonly party: Party;
  readonly call: Watched<unknown>;
}

withRedisson("fair lock", (scene) => {
  const length = (name: string) => scene.redis.llen(fairQueue(name));
  const needsGrace = (skip: (why: string) => void) => {
    if (!scene.atLeast("3.46.0"))
      skip(`Redisson ${scene.version} waits five minutes for the dead; 3.46.0 can be told`);
  };

  async function take(side: Side, name: string, lease = NEVER): Promise<LockCalls> {
    const lock = (await scene.party(side)).lock("fair", name);
    await lock.lock(lease);
    return lock;
  }

  /** Waiters of these sides, in this order, behind those that already wait. */
  async function queue(name: string, sides: readonly Side[], options?: PartyOptions): Promise<Turn[]> {
    const turns: Turn[] = [];
    for (const side of sides) {
      const party = await scene.party(side, options);
      const lock = party.lock("fair", name);
      turns.push({ lock, party, call: await party.parked(() => lock.lock(NEVER)) });
    }
    return turns;
  }

  /** Each gets the lock in its turn, and not before. */
  async function expectServed(turns: readonly Turn[]): Promise<void> {
    for (const [i, { lock, call }] of turns.entries()) {
      await soon(call);
      expect(turns.slice(i + 1).every((later) => later.call.state === "pending")).toBe(true);
      await lock.unlock();
    }
  }

  test.each(DIRECTIONS)(
    "waiters of %s and %s, one after the other, are served in the order of arrival",
    async (one, other) => {
      const name = scene.name();
      const holder = await take(other, name);
      const turns = await queue(name, [one, other, one, other]);
      await holder.unlock();
      await expectServed(turns);
      await scene.expectNothingLeft(name);
    },
  );

  test.each<[how: string, side: Side, wait?: number]>([
    ["a Java waiter whose time is up", "Java", WAIT],
    ["a Node waiter whose time is up", "Node", WAIT],
    ["a Node waiter that is aborted", "Node"],
  ])("%s leaves the middle of the queue, and those around it are served in order", async (_, side, wait) => {
    const name = scene.name();
    const holder = await take("Java", name);
    const first = await queue(name, ["Node"]);
    const quitter = await scene.party(side);
    const call = await quitter.parked(() => FAIR.tries(quitter, name, wait ?? NEVER));
    const later = await queue(name, ["Java", "Node"]);
    if (wait === undefined) await quitter.giveUp();
    await call.promise.catch(() => {});
    await until("it has left", async () => (await length(name)) === 3);
    await holder.unlock();
    await expectServed([...first, ...later]);
    await scene.expectNothingLeft(name);
  });

  test("no call without a wait jumps a queue whose next one is silent, though the lock is free", async () => {
    const name = scene.name();
    const holder = await take("Node", name);
    const [silent] = (await queue(name, ["Java"])) as [Turn];
    await silent.party.giveUp();
    await silent.call.promise.catch(() => {});
    await holder.unlock();
    expect(await scene.redis.exists(name)).toBe(0);
    for (const side of ["Java", "Node"] as const)
      expect(await FAIR.tries(await scene.party(side), name)).toBeNull();
    expect(await length(name)).toBe(1);
  });

  interface Death {
    readonly dead: Side;
    readonly behind: readonly Side[];
    /** Within this time, in milliseconds. */
    readonly within: number;
    /** Of those behind it. */
    readonly pollCap?: number;
    readonly grace?: number;
  }
  const LAPSED = { within: STEADY + GRACE + SLACK, grace: GRACE };

  test.for<[what: string, death: Death]>([
    [
      "a JVM that is next is killed: Java and Node behind it",
      { dead: "Java", behind: ["Java", "Node"], ...LAPSED },
    ],
    // Long before the place lapses.
    [
      "a Node process that is next is killed: Java and Node, which looks, behind it",
      { dead: "Node", behind: ["Java", "Node"], pollCap: 600, within: PATIENCE },
    ],
  ])(
    "%s are served in order when its place lapses or is found dead",
    { timeout: 6 * PATIENCE },
    async ([, death], { skip }) => {
      needsGrace(skip);
      const { dead, behind, within, pollCap, grace } = death;
      const name = scene.name();
      const graces = grace === undefined ? {} : { fairWaitTimeout: grace };
      const polls = pollCap === undefined ? {} : { pollCap };
      const holder = scene.node({ ...graces, watchdogTimeout: STEADY }).lock("fair", name);
      await holder.lock();
      const doomed = await mortal(scene, dead, { watchdogTimeout: STEADY, ...graces, ...polls });
      await doomed.waits(FAIR, name);
      const java = await scene.newJava(grace === undefined ? {} : { fairWait: grace });
      const turns = await queue(name, behind, { java, node: { ...graces, ...polls } });
      await doomed.kill();
      await holder.unlock();
      const begun = performance.now();
      await expectServed(turns);
      expect(performance.now() - begun).toBeLessThan(within);
    },
  );
});
