/** Contract section 2: how long a lock stays in one process while others wait for it, on the clock of the row. */
import { expect } from "vitest";
import { readWriteChannel } from "../../src/base/names.js";
import { FENCED, PLAIN, RED, row, type VirtualPlace, WRITE, watch } from "../support/place/index.js";

const LONG = 600_000;
const client = { commandTimeout: 1_000, pollCap: LONG, watchdogTimeout: LONG };
/** The kinds whose release can grant the lock to the next one by the same command. */
const kinds = [PLAIN, FENCED, WRITE, RED];

/** Lets tasks take the lock for some milliseconds, again and again, until {@link stop} is called; counts their grants. */
function busy({ lock, server, client: mine }: VirtualPlace, tasks: number, ms: number, isNested = false) {
  const state = { grants: 0, isOver: false };
  const once = async () => {
    const holds = await Promise.all(isNested ? [lock.lock(), lock.lock()] : [lock.lock()]);
    state.grants++;
    await new Promise<void>((done) => void server.clock.after(ms, done));
    for (const hold of holds) await hold.unlock();
  };
  const work = async () => {
    while (!state.isOver) await (isNested ? mine.scope(once) : once());
  };
  return Object.assign(state, { done: Promise.all(Array.from({ length: tasks }, work)) });
}

async function stop(
  pass: (ms: number) => Promise<void>,
  ...busies: ReturnType<typeof busy>[]
): Promise<void> {
  for (const each of busies) each.isOver = true;
  await pass(6_000);
  for (const { done } of busies) await done;
}

/** The connection on which messages come is there, and stays silent from then on. */
async function deafen({ lock, rival, a, settle }: VirtualPlace): Promise<void> {
  const first = await rival.lock();
  const early = watch(lock.lock());
  await settle();
  await first.unlock();
  await settle();
  await early.value?.unlock();
  await settle();
  a.keep("replies", a.connections.at(-1));
}

for (const [whose, isNested, prepare, id] of [
  ["", false, async () => {}, ""],
  [", to owners that call twice at once,", true, async () => {}, " [B66]"],
  [", in a process that hears no message,", false, deafen, " [B136]"],
] as const) {
  row(
    `a lock that goes from hand to hand${whose} leaves its process after 50 ms while others wait, and comes back [§2 hand-over-bound] [B38]${id}`,
    { kinds: id === "" ? kinds : [PLAIN], client: { ...client, pollCap: prepare === deafen ? 100 : LONG } },
    async (place) => {
      const { a, rival, pass } = place;
      await prepare(place);
      const work = busy(place, 3, 1, isNested);
      await pass(100);
      expect(work.grants).toBeGreaterThan(30);
      for (let visits = 0; visits < 2; visits++) {
        const theirs = watch(rival.lock());
        let waited = 0;
        for (; theirs.state === "pending" && waited < 500; waited++) await pass(1);
        // 50 ms, the hold that was open then, and some milliseconds in which others are heard.
        expect(waited).toBeLessThanOrEqual(60);
        const before = work.grants;
        await pass(5);
        expect(work.grants).toBe(before);
        await theirs.value?.unlock();
        await pass(prepare === deafen ? 150 : 60);
        expect(work.grants).toBeGreaterThan(before);
      }
      await stop(pass, work);
      await a.letGo();
    },
  );
}

row(
  "a process that only tries, and waits never, gets a lock that goes from hand to hand now and then [§2 hand-over-bound]",
  { kinds: [PLAIN] },
  async (place) => {
    const { rival, pass } = place;
    const work = busy(place, 5, 1);
    let taken = 0;
    let tries = 0;
    for (; taken < 2 && tries < 15_000; tries++) {
      await pass(1);
      const theirs = await rival.tryLock();
      if (theirs) taken++;
      await theirs?.unlock();
    }
    expect(taken).toBe(2);
    expect(tries).toBeGreaterThan(16);
    await stop(pass, work);
  },
);

row(
  "a long hold that is open when the 50 ms are over is the last one before others [§2 hand-over-bound] [B39]",
  { kinds: [PLAIN], client },
  async (place) => {
    const { rival, pass } = place;
    const work = busy(place, 3, 1_500);
    await pass(100);
    const theirs = watch(rival.lock());
    await pass(1_420);
    expect([theirs.value?.isHeld, work.grants]).toEqual([true, 1]);
    await theirs.value?.unlock();
    await pass(20);
    expect(work.grants).toBe(2);
    await stop(pass, work);
  },
);

row(
  "a lock goes from hand to hand by one command each, also behind a release while the first that waits was trying [§2 one-round-trip] [B303]",
  { kinds: [WRITE], client },
  async ({ a, lock, server, settle, view }) => {
    const hold = await lock.lock();
    const cycle = async () => (await lock.lock()).unlock();
    const first = cycle();
    await settle();
    const others = Array.from({ length: 20 }, cycle);
    await settle();
    a.keep("replies");
    await view.call("PUBLISH", readWriteChannel(view.name), "0");
    const released = hold.unlock();
    await settle();
    server.took();
    await a.letGo();
    await Promise.all([released, first, ...others]);
    expect(server.took()).toHaveLength(1 + 20 + 1);
  },
);

row(
  "where nobody else waits a lock goes from hand to hand without a pause [§2 hand-over-bound] [B39]",
  { kinds: [PLAIN], client },
  async (place) => {
    const work = busy(place, 3, 10);
    await place.pass(3_000);
    expect(work.grants).toBeGreaterThan(270);
    await stop(place.pass, work);
  },
);

row(
  "several processes take turns, however many wait in each [§2 hand-over-bound] [B38]",
  { kinds: [PLAIN], client },
  async (place) => {
    const { pass, server, kind, party } = place;
    const parties = [16, 8, 2, 1].map((tasks) => {
      const each = party();
      const lock = kind.make(each.clients, "job");
      return busy({ ...place, lock, client: each.client, server }, tasks, 3);
    });
    await pass(1_500);
    const shares = parties.map(({ grants }) => grants);
    for (const share of shares) expect(share).toBeGreaterThan(Math.max(...shares) / 20);
    await stop(pass, ...parties);
  },
);
