/** Nothing grows: work that is done very often leaves no heap, timer, socket or listener, and no key without a TTL. */
import { describe, expect, test } from "vitest";
import { PATIENCE, startRedis, startWorker, until } from "../../support/index.js";
import { bundledWorker } from "../build-worker.js";
import type { Grown, Work } from "./leaks-worker.js";

/** How often the work is done: in every run, and by `npm run leaks`. */
const WORKS: readonly [work: Work, short: number, long: number][] = [
  ["names taken and given back", 1_000, 100_000],
  ["calls aborted", 1_000, 100_000],
  ["calls without an answer", 4_000, 10_000],
  ["holds lost", 200, 10_000],
  ["clients opened and closed", 20, 1_000],
  ["hand-overs", 1_000, 1_000_000],
];
const IS_LONG = process.env.HOLDFAST_LEAKS === "long";
/** By how much a heap may differ by chance: some kilobytes for each time in the short run, ten bytes in the long run. */
const NOISE = 1_000_000;

const bundle = bundledWorker("./leaks/leaks-worker.ts");
describe("nothing is left of", () => {
  test.each(WORKS)("%s", { timeout: IS_LONG ? 3_600_000 : 6 * PATIENCE }, async (work, short, long) => {
    await using own = await startRedis();
    await using worker = await startWorker(bundle(), { execArgv: ["--expose-gc"] });
    const times = IS_LONG ? long : short;
    const grown = await worker.request<Grown>("grow", { port: own.port, work, times });
    const halves = [grown.halfway.heap - grown.before.heap, grown.after.heap - grown.halfway.heap];
    // Tables of the engine grow in steps, so the smaller half counts; a leak grows in both halves.
    const bytes = Math.min(...halves);
    console.log(
      `${times} ${work}: heap, by halves: ${halves.map((half) => Math.round(half / 1_024)).join(", ")} KiB`,
    );
    expect(bytes).toBeLessThan(NOISE);
    // A few timers may be about to end; a leak would leave hundreds.
    for (const [name, count] of Object.entries(grown.after.resources))
      expect([name, count - (grown.before.resources[name] ?? 0) < 5]).toEqual([name, true]);
    expect(grown.after.listeners).toBe(grown.before.listeners);
    expect(grown.unhandled).toEqual([]);
    const keys = (await own.call("KEYS", "*")) as string[];
    for (const key of keys.slice(0, 100)) {
      const ttl = Number(await own.call("PTTL", key));
      expect(ttl === -2 || (ttl > 0 && ttl <= 60_000)).toBe(true);
    }
    await until(
      "its connections are gone",
      async () => (await own.info("clients")).get("connected_clients") === "1",
    );
  });
});
