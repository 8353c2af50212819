/** Readers that wait behind a writer get the lock together, by few scripts; each has a hold and a lease of its own. */
import { expect } from "vitest";
import { readHold } from "../../src/base/names.js";
import type { Hold } from "../../src/index.js";
import { NAME, READ, row, type VirtualPlace, type Watched, watch } from "../support/place/index.js";

const READERS = 120;
const kinds = [READ];
const client = { pollCap: 600_000, commandTimeout: 30_000, watchdogTimeout: 900_000 };

interface Line extends VirtualPlace {
  readonly writer: Hold;
  readonly readers: readonly Watched<Hold>[];
  readonly controllers: readonly AbortController[];
}

const leaseOf = (i: number): number => 300_000 + 100 * i;

/** Readers of one client that wait for a writer of another client. */
const inLine = (body: (line: Line) => Promise<void>) => async (place: VirtualPlace) => {
  const { lock, twin, rival, settle, server } = place;
  await (await twin.lock()).unlock();
  const writer = await rival.lock();
  const controllers = Array.from({ length: READERS }, () => new AbortController());
  const readers = controllers.map(({ signal }, i) => watch(lock.lock({ lease: leaseOf(i), signal })));
  await settle();
  server.took();
  await body({ ...place, writer, readers, controllers });
};

/** The lock has exactly these holds, each with its own lease and counted once; they are given back. */
async function expectEach(place: VirtualPlace, readers: readonly Watched<Hold>[]): Promise<void> {
  const { server, view, lock } = place;
  const kept = readers.flatMap(({ value }, i) => (value ? [[value, leaseOf(i)] as const] : []));
  const counts = Object.fromEntries(kept.map(([{ ownerId }]) => [ownerId, "1"]));
  expect(await view.hash()).toEqual({ mode: "read", ...counts });
  for (const [hold, lease] of kept) {
    const ttl = server.ttl(readHold(NAME, hold.ownerId, 1));
    expect(ttl).toBeLessThanOrEqual(lease);
    expect(ttl).toBeGreaterThan(lease - 10_000);
    expect(await lock.getHoldCount({ owner: hold })).toBe(1);
  }
  await Promise.all(kept.map(([hold]) => hold.unlock()));
}

row(
  "many readers wait without a command and are let in at once, each with its own lease [§4 read-write] [§4 reader-leases]",
  { kinds, client },
  inLine(async (place) => {
    const { writer, readers, settle, pass, server } = place;
    await pass(10_000);
    expect(server.took()).toEqual([]);
    await writer.unlock();
    await settle();
    // The release, and one try of each: the first granted one tells the other readers.
    expect(server.took().length).toBeLessThanOrEqual(READERS + 1);
    expect(readers.every(({ state }) => state === "resolved")).toBe(true);
    await expectEach(place, readers);
  }),
);

row(
  "readers aborted during their try leave nothing, and the other readers are let in [§2 nothing-left] [§4 read-write]",
  { kinds, client },
  inLine(async (place) => {
    const { writer, readers, controllers, settle, pass, a } = place;
    a.keep("replies");
    await writer.unlock();
    await settle();
    await a.letOneGo();
    const gone = [1, 7, 60, READERS - 1];
    for (const i of gone) controllers[i]?.abort("enough");
    await a.letGo();
    await pass(1_000);
    for (const [i, { outcome, state }] of readers.entries())
      expect(gone.includes(i) ? outcome : state).toBe(gone.includes(i) ? "enough" : "resolved");
    await expectEach(place, readers);
  }),
);
