/** Many waiters of one fair lock that leave together: what that costs Redis, and which calls have to wait for it. */
import { describe, expect, test } from "vitest";
import { KINDS, PLAIN } from "../contract/kinds.js";
import { type Bed, failOnUnhandledRejections, Stage, script, soon, watch } from "../faults/harness.js";
import { expectNothingLeft } from "../faults/remains.js";
import { forFile, until } from "../support/index.js";
import { keysOf } from "./helpers.js";

/** The number of waiters; `HOLDFAST_CROWD=10000` for more. */
const CROWD = Number(process.env.HOLDFAST_CROWD ?? 2_000);
/** The most commands of the clean-up that may be unanswered at the same time. */
const AT_A_TIME = 32;

const FAIR = KINDS.find(({ name }) => name.startsWith("fair")) ?? PLAIN;

failOnUnhandledRejections();
const stage = await forFile(Stage.start(["standalone"]));

const places = (bed: Bed): Promise<number> =>
  stage.server.call("LLEN", keysOf.queue(bed.name)) as Promise<number>;

/** How often scripts and clients called a command since the last reset, and how many microseconds Redis spent on it. */
async function statsOf(command: string): Promise<{ calls: number; usec: number }> {
  const stats = String(await stage.server.call("INFO", "commandstats"));
  const [, calls = 0, usec = 0] = new RegExp(`cmdstat_${command}:calls=(\\d+),usec=(\\d+)`).exec(stats) ?? [];
  return { calls: Number(calls), usec: Number(usec) };
}

describe("a crowd that leaves in the order in which it came", () => {
  test("aborted at once: a few commands, a few steps for each, and an unlock goes before [B37]", {
    timeout: 60_000,
  }, async () => {
    await using bed = await stage.bed({ kind: FAIR });
    const hold = await bed.lock.lock();
    const controllers = Array.from({ length: CROWD }, () => new AbortController());
    const calls = controllers.map(({ signal }) => watch(bed.lock.lock({ signal })));
    await until("all have a place", async () => (await places(bed)) === CROWD, { timeout: 50_000 });
    bed.proxy.clear();
    await stage.server.call("CONFIG", "RESETSTAT");
    for (const controller of controllers) controller.abort("enough");
    await hold.unlock();
    await until("all are over", () => calls.every(({ error }) => error === "enough"));
    await until("the queue is gone", async () => (await places(bed)) === 0, { timeout: 20_000 });
    const { usec } = await statsOf("evalsha");
    console.log(`${CROWD} that leave cost Redis ${Math.round(usec / 1_000)} ms`);
    // The first four leave alone, and move all the others up. After that, waiters leave from the end of the queue.
    expect((await statsOf("zincrby")).calls).toBeLessThan(5 * CROWD);
    expect((await statsOf("lrange")).calls).toBeLessThan(CROWD);
    const undos = bed.proxy.count(script("undo", bed.name));
    expect(undos).toBeLessThan(CROWD / 50);
    const commands = bed.proxy.commands.map(({ command }) => command);
    const before = commands.slice(0, commands.findIndex(script("release", bed.name)));
    expect(before.filter(script("undo", bed.name)).length).toBeLessThanOrEqual(AT_A_TIME);
    await expectNothingLeft(bed);
  });

  test("timed out: those of others that stay have their turns nearer, and keep their order", {
    timeout: 60_000,
  }, async () => {
    await using bed = await stage.bed({ kind: FAIR });
    await using other = await stage.bed({ kind: FAIR });
    const lock = other.make(bed.name);
    const hold = await bed.lock.lock();
    const stays: ReturnType<typeof watch>[] = [];
    const leaves: ReturnType<typeof watch>[] = [];
    for (let i = 0; i < 4; i++) {
      for (let j = 0; j < 50; j++) leaves.push(watch(bed.lock.lock({ wait: 9_000 })));
      await until("they have places", async () => (await places(bed)) === 51 * i + 50);
      stays.push(watch(lock.lock()));
      await until("it has a place", async () => (await places(bed)) === 51 * i + 51);
    }
    const scores = async () => {
      const entries = (await stage.server.call(
        "ZRANGE",
        keysOf.timeouts(bed.name),
        "0",
        "-1",
        "WITHSCORES",
      )) as string[];
      return entries.filter((_, i) => i % 2).map(Number);
    };
    await until("all are over", () => leaves.every(({ state }) => state === "rejected"), { timeout: 20_000 });
    await until("they have left", async () => (await places(bed)) === stays.length);
    const [first = 0, ...rest] = await scores();
    // Tickets one turn apart, as if the waiters in between had never come.
    expect(rest.map((score, i) => Math.round((score - first) / 300_000) - i - 1)).toEqual(rest.map(() => 0));
    await hold.unlock();
    for (const call of stays) await ((await soon(call)) as { unlock(): Promise<void> }).unlock();
    await expectNothingLeft(bed);
  });
});
