/** Sends the tries of readers of one lock together: one script for all tries that are due in the same moment. */
import { readHold, tombstone, waitingWriters } from "../base/names.js";
import { type Acquired, DONE, type Try } from "../locks/backend.js";
import type { CallOf } from "../redis/call.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { readAcquire } from "../scripts/generated.js";
import type { AnyCall } from "./calls.js";

/** The most readers in one script: a longer script would hold up the server. */
const MOST = 100;

interface Gathering {
  readonly tries: Try[];
  readonly answers: Promise<readonly Acquired[]>;
}

/** What the readers of one script have in common. */
export interface Reading {
  readonly lockName: string;
  readonly key: string;
  /** Whether these readers let waiting writers go first. */
  readonly yields: boolean;
}

/** One call that tries for all these readers. */
export function readersCall({ lockName, key, yields }: Reading, tries: readonly Try[]): AnyCall {
  const theirs = tries.flatMap(({ wireId }) => [tombstone(key, wireId), readHold(key, wireId, 1)]);
  const keys = { lock: key, writers: waitingWriters(key), theirs };
  const args = {
    yield: yields ? 1 : 0,
    owners: tries.map(({ wireId }) => wireId),
    leases: tries.map(({ lease }) => lease),
  };
  const within = Math.max(...tries.map((each) => each.within));
  // Each acquisition has asked the backlog already, before it minted its wire id.
  const vital = true;
  return { lockName, script: readAcquire, keys, args, within, vital } satisfies CallOf<typeof readAcquire>;
}

/** Gathers the tries of all readers of one client. */
export class Readers {
  readonly #runner: CommandRunner;
  /** By lock and `yields`. Each takes further tries until the microtasks that were queued before it have run. */
  readonly #open = new Map<string, Gathering>();

  constructor(runner: CommandRunner) {
    this.#runner = runner;
  }

  /** Tries once for one reader, together with the readers that try in the same moment. */
  async acquire(reading: Reading, reader: Try): Promise<Acquired> {
    const { tries, answers } = this.#gatheringFor(reading);
    const index = tries.push(reader) - 1;
    const isShort = reader.within < this.#runner.commandTimeout;
    const all = isShort
      ? await this.#runner.withTimeout(reading.lockName, answers, reader.within)
      : await answers;
    return all[index] as Acquired;
  }

  #gatheringFor(reading: Reading): Gathering {
    const name = `${reading.yields} ${reading.key}`;
    const known = this.#open.get(name);
    if (known && known.tries.length < MOST) return known;
    const tries: Try[] = [];
    const answers = Promise.resolve().then(() => {
      if (this.#open.get(name) === gathering) this.#open.delete(name);
      return this.#runner.call(readersCall(reading, tries), (reply) => readAnswers(reply, tries.length));
    });
    const gathering: Gathering = { tries, answers };
    this.#open.set(name, gathering);
    return gathering;
  }
}

/** Reads `{granted, ms, …}`: a pair for each reader. */
export function readAnswers(reply: unknown, readers: number): Acquired[] {
  const numbers = (reply as unknown[]).map(Number);
  if (numbers.length !== 2 * readers) throw new RangeError("an answer for each reader");
  const answers: Acquired[] = [];
  for (let i = 0; i < numbers.length; i += 2) {
    answers.push(numbers[i] === DONE ? { granted: true } : { granted: false, ttl: numbers[i + 1] ?? 0 });
  }
  return answers;
}
