/** Contract section 2: what wakes those who wait, and what they cost. */
import { expect } from "vitest";
import { FAIR, PLAIN, row, SINGLE, type VirtualPlace, WRITE, watch } from "../support/place/index.js";

/** Long enough that the poll wakes no waiter. */
const NEVER = 600_000;
const COMMAND_TIMEOUT = 1_000;
const PATIENT = { pollCap: NEVER, commandTimeout: COMMAND_TIMEOUT, watchdogTimeout: 900_000 };

const count = ({ servers }: VirtualPlace) => servers.flatMap((server) => server.took()).length;

row(
  "a waiter asks twice, costs nothing after that, and is woken by the message of the release [§2 woken-by-message]",
  { kinds: SINGLE, client: PATIENT },
  async (place) => {
    const { lock, rival, pass, settle } = place;
    const theirs = await rival.lock({ lease: 60_000 });
    count(place);
    const call = watch(lock.lock());
    await settle();
    expect(count(place)).toBe(2);
    await pass(20_000);
    expect(count(place)).toBe(0);
    await theirs.unlock();
    await settle();
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

row(
  "without a message the first waiter tries when the holder's time ends, and nobody else in its process [§2 poll-cap]",
  { kinds: SINGLE, client: PATIENT },
  async (place) => {
    const { lock, rival, pass, b, settle } = place;
    await rival.lock({ lease: 5_000 });
    const calls = [watch(lock.lock()), watch(lock.lock())];
    await settle();
    b.keep("requests");
    count(place);
    await pass(4_999);
    expect([calls[0]?.outcome, count(place)]).toEqual(["pending", 0]);
    await pass(100);
    expect(calls[0]?.value?.isHeld).toBe(true);
    await b.letGo();
    await calls[0]?.value?.unlock();
    await pass(100);
    await calls[1]?.value?.unlock();
  },
);

row(
  "without a message the first waiter tries again after pollCap, and nobody else in its process [§2 poll-cap]",
  { kinds: [PLAIN, FAIR, WRITE], client: { ...PATIENT, pollCap: 3_000 } },
  async (place) => {
    const { lock, rival, pass } = place;
    const theirs = await rival.lock({ lease: 600_000 });
    const calls = [1, 2, 3].map(() => watch(lock.lock()));
    await pass(100);
    count(place);
    await pass(30_000);
    expect(count(place)).toBeGreaterThanOrEqual(9);
    // The places of fair waiters are refreshed by the tries of the first, twice in a pollCap.
    expect(count(place)).toBeLessThanOrEqual(22);
    await theirs.unlock();
    for (const call of calls) {
      await pass(100);
      await call.value?.unlock();
    }
  },
);

row(
  "a waiter hears of the late release of a hold whose time was over, though that finds nothing any more [§2 woken-by-message] [B203]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, rival, b, pass, settle }) => {
    const short = await rival.lock({ lease: 5_000 });
    const long = await rival.lock({ lease: 60_000, owner: short });
    const call = watch(lock.lock());
    await settle();
    await long.unlock();
    b.keep("requests");
    await pass(61_000);
    await b.letGo();
    await settle();
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

row(
  "a dropped subscriber connection costs no waiter its wake-up [§2 subscriber-dropped] [F11]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, rival, a, settle, pass }) => {
    const theirs = await rival.lock({ lease: NEVER });
    const call = watch(lock.lock());
    await settle();
    for (const connection of a.connections) connection.lose();
    await theirs.unlock();
    for (const connection of a.connections) connection.open();
    await pass(10);
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

row(
  "a lease that ends within the millisecond is waited for, and not asked for all the time [§2 poll-cap]",
  { kinds: [PLAIN], client: PATIENT },
  async ({ lock, rival, server, pass, settle }) => {
    await rival.lock({ lease: 100 });
    server.clock.moveTo(server.clock.mono() + 99.5);
    server.took();
    const call = watch(lock.lock());
    await settle();
    expect(server.took().length).toBeLessThanOrEqual(3);
    await pass(100);
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

row(
  "fair waiters of a process that stood still until their places had lapsed all get the lock [§4 fair] [B170] [B222]",
  { kinds: [FAIR], client: { ...PATIENT, pollCap: 1_000 } },
  async ({ lock, twin, a, pass, settle }) => {
    const theirs = await twin.lock();
    const calls = [1, 2, 3].map(() => watch(lock.lock()));
    await pass(10);
    await a.cut();
    await pass(10_000);
    await theirs.unlock();
    await a.mend();
    await pass(100);
    for (const [i, call] of calls.entries()) {
      await pass(100);
      expect([i, call.state]).toEqual([i, "resolved"]);
      await call.value?.unlock();
      await settle();
    }
  },
);
