/** Calls of one process for groups take turns after they have lost a round; this keeps no other call waiting. */
import { expect, test } from "vitest";
import { type Hold, MultiLock } from "../../src/index.js";
import { soon, type Watched, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { Hall, NEVER, useStages } from "./helpers.js";

const stages = await useStages();

const LOSERS = 12;
const words = Array.from({ length: LOSERS }, (_, i) => `b${10 + i}`);

/** A hold on `a` and `c`, and calls that want `a` and have lost rounds to that hold, so each of them gets a turn. */
async function contested(hall: Hall): Promise<{ group: MultiLock; hold: Hold; losers: Watched<Hold>[] }> {
  const theirs = await Promise.all(words.map((word) => hall.lock(1, word).lock()));
  const losers: Watched<Hold>[] = words.map((word) => watch(hall.multi(0, "a", word).lock()));
  await until("they wait for what the others have", async () => (await hall.channels()).length === LOSERS);
  await until("they hold nothing", async () => !(await hall.held()).includes("a"));
  const group = hall.multi(0, "a", "c");
  const hold = await group.lock();
  await Promise.all(theirs.map((each) => each.unlock()));
  await until("they wait for a, and have given back the rest", async () => {
    const listens = (await hall.channels()).some((channel) => channel.includes(hall.name("a")));
    return listens && (await hall.held()).join() === "a,c";
  });
  return { group, hold, losers };
}

/** All calls get the lock, in any order, because a call that has lost a round may be overtaken. */
async function allHaveTheirTurn(losers: readonly Watched<Hold>[]): Promise<void> {
  await Promise.all(losers.map(async (call) => (await soon(call)).unlock()));
}

test("a call whose owner holds a member is not held up", async () => {
  await using hall = await Hall.of(stages, { pollCap: NEVER }, {});
  const { group, hold, losers } = await contested(hall);
  const nested = watch(group.lock({ owner: hold }));
  const other = watch(hall.multi(0, "a", "d").lock({ owner: hold }));
  const running = watch(group.run(() => group.run(() => {}), { owner: hold }));
  await Promise.all([soon(nested), soon(other), soon(running)]);
  // A turn of each waiting call takes a quarter of a second, and this call has waited for none of them.
  expect(Math.max(nested.took, other.took, running.took)).toBeLessThan((LOSERS / 2) * 250);
  for (const each of [nested.value, other.value, hold]) await each?.unlock();
  await allHaveTheirTurn(losers);
  await hall.expectNothingLeft();
});

test("a call that is held up can be given up, by its signal, its time and the end of its client", async () => {
  await using hall = await Hall.of(stages, { pollCap: NEVER }, {}, {});
  const { group, hold, losers } = await contested(hall);
  const controller = new AbortController();
  const aborted = watch(group.lock({ signal: controller.signal }));
  const late = watch(group.lock({ wait: 2_500 }));
  const closed = watch(new MultiLock(hall.lock(0, "a"), hall.lock(2, "d")).lock());
  expect(await group.tryLock()).toBeNull();
  controller.abort(new Error("enough"));
  await expect(soon(aborted)).rejects.toThrow("enough");
  await expect(soon(late)).rejects.toMatchObject({ code: "WAIT_TIMEOUT", lockName: group.name });
  await hall.client(2).close({ timeout: 0 });
  await expect(soon(closed)).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
  await hold.unlock();
  await allHaveTheirTurn(losers);
  await hall.expectNothingLeft();
});

test("groups of other locks, and single locks, are not held up", async () => {
  await using hall = await Hall.of(stages, { pollCap: NEVER }, {});
  const { hold, losers } = await contested(hall);
  const begun = performance.now();
  await hall.multi(0, "d", "e").run(() => {});
  await hall.lock(0, "b10").run(() => {});
  expect(performance.now() - begun).toBeLessThan((LOSERS / 2) * 250);
  await hold.unlock();
  await allHaveTheirTurn(losers);
  await hall.expectNothingLeft();
});
