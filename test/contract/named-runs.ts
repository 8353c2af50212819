/** Runs that a row begins and ends by name, to see which of them run at one time. */
import { expect } from "vitest";
import type { Lock, LockOptions } from "../../src/index.js";
import {
  type Deferred,
  deferred,
  EXCLUSIVE,
  type Kind,
  row,
  type VirtualPlace,
  type Watched,
  watch,
} from "../support/place/index.js";

/** Runs with names. Each goes on until the row ends it. */
export class Runs {
  readonly #inside = new Set<string>();
  readonly #ends = new Map<string, Deferred>();
  readonly #place: VirtualPlace;

  constructor(place: VirtualPlace) {
    this.#place = place;
  }

  begin(name: string, lock: Lock, options: LockOptions = {}, within?: () => unknown): Watched<string> {
    const end = deferred();
    this.#ends.set(name, end);
    return watch(
      lock.run(async () => {
        this.#inside.add(name);
        try {
          within?.();
          await end.promise;
        } finally {
          this.#inside.delete(name);
        }
        return name;
      }, options),
    );
  }

  /** The runs that are running. */
  async now(): Promise<string[]> {
    await this.#place.settle();
    return [...this.#inside];
  }

  /** Ends a run; returns the runs that are running after that. */
  async end(name: string): Promise<string[]> {
    this.#ends.get(name)?.resolve();
    return this.now();
  }

  /** Ends runs, one after the other; each has to be the only one that runs. */
  async endInTurn(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      expect(await this.now()).toEqual([name]);
      await this.end(name);
    }
  }
}

type Body = (place: VirtualPlace & { runs: Runs }) => unknown;

/** A row on the kinds that exclude, all of whose calls have one owner: it is written inside one scope. */
export function inScope(title: string, body: Body, kinds: readonly Kind[] = EXCLUSIVE): void {
  row(title, { kinds }, (place) =>
    place.client.scope(async () => void (await body({ ...place, runs: new Runs(place) }))),
  );
}
