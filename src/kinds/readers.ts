/** Readers of one lock whose tries are due together are let in by one script. */
import { readHold, tombstone, waitingWriters } from "../base/names.js";
import type { Env } from "../locks/env.js";
import { type Acquired, DONE, type Try } from "../locks/primitive.js";
import { readAcquire } from "../scripts/generated.js";
import type { AnyCall } from "./calls.js";

/** Readers of one script: it must not hold up the server. */
const MOST = 100;

interface Gathering {
  readonly tries: Try[];
  readonly answers: Promise<readonly Acquired[]>;
}

/** By client, and then by lock and manners; each is open until the microtasks that are due by now have run. */
const open = new WeakMap<Env, Map<string, Gathering>>();

export interface ReadersOptions {
  readonly env: Env;
  readonly lockName: string;
  readonly key: string;
  /** Whether they let waiting writers go first. */
  readonly yields: boolean;
}

/** The call that tries for all of them. */
export function readersCall({ lockName, key, yields }: ReadersOptions, tries: readonly Try[]): AnyCall {
  const theirs = tries.flatMap(({ wireId }) => [tombstone(key, wireId), readHold(key, wireId, 1)]);
  const keys = { lock: key, writers: waitingWriters(key), theirs };
  const args = {
    yield: yields ? 1 : 0,
    owners: tries.map(({ wireId }) => wireId),
    leases: tries.map(({ lease }) => lease),
  };
  const within = Math.max(...tries.map((each) => each.within));
  return { lockName, script: readAcquire, keys, args, within } as unknown as AnyCall;
}

/** Tries once for one reader, together with those that ask in the same moment. */
export async function acquireTogether(options: ReadersOptions, reader: Try): Promise<Acquired> {
  const { env, lockName } = options;
  const { tries, answers } = gatheringFor(options);
  const index = tries.push(reader) - 1;
  const late = reader.within < env.link.commandTimeout;
  const all = late ? await env.link.limited(lockName, answers, reader.within) : await answers;
  return all[index] as Acquired;
}

function gatheringFor(options: ReadersOptions): Gathering {
  const { env, key, yields } = options;
  let gatherings = open.get(env);
  if (!gatherings) {
    gatherings = new Map();
    open.set(env, gatherings);
  }
  const name = `${yields} ${key}`;
  const known = gatherings.get(name);
  if (known && known.tries.length < MOST) return known;
  const tries: Try[] = [];
  const answers = Promise.resolve().then(() => {
    if (gatherings.get(name) === gathering) gatherings.delete(name);
    return env.link.call(readersCall(options, tries), readAnswers);
  });
  const gathering: Gathering = { tries, answers };
  gatherings.set(name, gathering);
  return gathering;
}

/** `{granted, ms, …}` */
function readAnswers(reply: unknown): Acquired[] {
  const numbers = (reply as unknown[]).map(Number);
  const answers: Acquired[] = [];
  for (let i = 0; i < numbers.length; i += 2) {
    answers.push(numbers[i] === DONE ? { granted: true } : { granted: false, ttl: numbers[i + 1] ?? 0 });
  }
  return answers;
}
