/**
 * A stopped process may have lost its places in lines: it notes the stall, and the checker ignores its places around
 * it.
 */
import { beforeEach, expect, test } from "vitest";
import { Fleet, type Part } from "../exclusion/fleet.js";
import { withoutDoubtfulPlaces } from "../exclusion/order.js";
import { MS, type Section } from "../exclusion/sections.js";
import { forTest, until } from "../support/index.js";

const POLL_CAP = 200;

const part: Part = {
  processes: 2,
  config: {
    kinds: ["readwrite"],
    coolTasks: 0,
    cool: 1,
    hotTasks: 2,
    hot: 1,
    manner: "calm",
    lease: [10_000, 10_000],
    safe: 3_000,
    options: { pollCap: POLL_CAP },
  },
  limits: { lease: 30_000, margin: 5_000, patience: 3_000 },
};

let fleet: Fleet;

beforeEach(async () => {
  fleet = forTest(await Fleet.launch());
});

test("a process that is paused for two polls notes when that was", async () => {
  await fleet.man(part);
  const [member] = fleet.members;
  const from = process.hrtime.bigint();
  member?.worker.pause();
  const awake = from + BigInt(2 * POLL_CAP) * MS;
  await until("it has stood still for long enough", () => process.hrtime.bigint() > awake);
  member?.worker.resume();
  const stall = await until("it has noted that", async () => {
    const { stalls } = await fleet.recall(new Map(), part.limits);
    return stalls?.get(member?.name ?? "")?.find(({ until: end }) => end > awake);
  });
  expect(stall?.from).toBeLessThan(awake);
  expect((await fleet.stop()).errors).toEqual([]);
});

test("a place counts for nothing while its own process stood still, and for as much as ever while another did", () => {
  const place = { at: 20n * MS, before: "readers" } as const;
  const waited = { process: "p1", askedAt: 10n * MS, enteredAt: 90n * MS, place } as Section;
  const places = (process: string, from: bigint, until: bigint) =>
    withoutDoubtfulPlaces(
      { sections: [waited], stalls: new Map([[process, [{ from, until }]]]) },
      [],
      5n * MS,
    ).map((section) => section.place);
  expect(places("p1", 30n * MS, 60n * MS)).toEqual([undefined]);
  expect(places("p2", 30n * MS, 60n * MS)).toEqual([place]);
  expect(places("p1", 0n, 4n * MS)).toEqual([place]);
  expect(places("p1", 91n * MS, 99n * MS)).toEqual([place]);
});
