/** Checks the library by many random histories; a failure says how to run it again. */
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
  /** Whether the first failure is taken as it is, instead of a shorter one. */
  readonly hurry?: boolean;
}

/** What is checked: histories as data, and a function that runs one in a world, on things with that name. */
export interface Checked<Step> {
  readonly histories: fc.Arbitrary<Step[]>;
  begin(world: World, name: string): Course<Step>;
}

/** The run of one history. */
export interface Course<Step> {
  /** The actions and their outcomes. */
  readonly log: readonly string[];
  /** The kinds of things that have happened. */
  readonly seen: ReadonlySet<string>;
  /** @throws Violation if the library does what the model does not allow */
  run(steps: readonly Step[]): Promise<void>;
}

export interface Report {
  readonly runs: number;
  readonly seed: number;
  /** For each kind of thing, the number of histories in which it has happened. */
  readonly seen: ReadonlyMap<string, number>;
  /** The violation, in the shortest history found. */
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
      // The world ends, so that the remains of a broken history do not disturb the next one.
      await world.end();
      world = undefined;
      // So much real time has passed that leases may have ended by it, so this failure proves nothing.
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
