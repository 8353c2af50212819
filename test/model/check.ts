/** Checks something by many random histories; a failure says how to run it again. */
import fc from "fast-check";
import type { Redis } from "ioredis";
import { History } from "./history.js";
import type { Kind } from "./scene.js";
import { histories } from "./steps.js";
import { World } from "./world.js";

export interface CheckOptions {
  readonly runs: number;
  /** A connection with a database of its own, for one world at a time. */
  readonly connect: () => Redis;
  readonly seed?: number | undefined;
  readonly path?: string | undefined;
  /** Take the first failure as it is, instead of a short one. */
  readonly hurry?: boolean;
}

/** What is checked: histories as data, and how one is run in a world, about things of that name. */
export interface Checked<Step> {
  readonly histories: fc.Arbitrary<Step[]>;
  begin(world: World, name: string): Course<Step>;
}

/** One history on its way. */
export interface Course<Step> {
  /** What was done and what came of it. */
  readonly log: readonly string[];
  /** What kinds of things have happened. */
  readonly seen: ReadonlySet<string>;
  /** @throws Violation if the library does what the model does not allow */
  run(steps: readonly Step[]): Promise<void>;
}

export interface Report {
  readonly runs: number;
  readonly seed: number;
  /** How many histories each thing has happened in. */
  readonly seen: ReadonlyMap<string, number>;
  /** What went wrong, in the shortest history found. */
  readonly failure?: { readonly path: string; readonly text: string };
}

/** Milliseconds. */
const LONGEST_LAG = 2_000;

let names = 0;

export function checkKind({ kind, ...options }: CheckOptions & { readonly kind: Kind }): Promise<Report> {
  return check({ histories, begin: (world, name) => new History(world, kind, name) }, options);
}

export async function check<Step>(checked: Checked<Step>, options: CheckOptions): Promise<Report> {
  const { runs, connect, seed, path, hurry = false } = options;
  const seen = new Map<string, number>();
  let world: World | undefined;
  let worst: { log: readonly string[] } = { log: [] };
  const property = fc.asyncProperty(checked.histories, async (steps: Step[]) => {
    world ??= new World(connect());
    await world.renew();
    const course = checked.begin(world, `model-${++names}`);
    try {
      await course.run(steps);
    } catch (error) {
      const { lag } = world;
      // What a broken history has left behind must not disturb the next one.
      await world.end();
      world = undefined;
      // Real time passed for so long that leases ended by it: that proves nothing.
      if (lag > LONGEST_LAG) return;
      worst = course;
      throw error;
    }
    for (const what of course.seen) seen.set(what, (seen.get(what) ?? 0) + 1);
  });
  const parameters = {
    numRuns: runs,
    endOnFailure: hurry || path !== undefined,
    ...(seed === undefined ? {} : { seed }),
    ...(path ? { path } : {}),
  };
  const details = await fc.check(property, parameters);
  await world?.end();
  const report = { runs: details.numRuns, seed: details.seed, seen };
  if (!details.failed) return report;
  const error = details.errorInstance instanceof Error ? details.errorInstance : undefined;
  const text = [String(error?.message), ...worst.log].join("\n");
  return { ...report, failure: { path: details.counterexamplePath ?? "", text } };
}
