/** What a client has of semaphores and must give back before it is closed: kept permits, and the permits of each `run`. */
import type { LiveSet } from "../base/live-set.js";
import type { Env } from "../env.js";
import type { SharedNumber } from "./number.js";
import type { KeptPermit } from "./permit.js";
import type { RunningPermits } from "./running-permits.js";

export class LivePermits {
  readonly live: LiveSet<KeptPermit | RunningPermits>;
  readonly #env: Env;
  /** The releases under way, by {@link permitKey}; each resolves with whether the permit was out. */
  readonly #returning = new Map<string, Promise<boolean>>();

  constructor(env: Env) {
    this.#env = env;
    this.live = env.liveSet();
  }

  /** The permit of this id, if this client looks after it. */
  kept(number: SharedNumber, id: string): KeptPermit | undefined {
    return this.live.get(permitKey(number, id)) as KeptPermit | undefined;
  }

  /** The release of this permit that is under way, if there is one. */
  returning(number: SharedNumber, id: string): Promise<boolean> | undefined {
    return this.#returning.get(permitKey(number, id));
  }

  /** Notes a release that is under way; once the client closes, for good: a later call for it has nobody to ask. */
  returns(number: SharedNumber, id: string, work: Promise<boolean>): void {
    const where = permitKey(number, id);
    this.#returning.set(where, work);
    const done = () => this.#env.closed || this.#returning.delete(where);
    work.then(done, done);
  }
}

/** Has the key of the semaphore in it, because a user may ask one semaphore for another's permit. */
export function permitKey({ key }: SharedNumber, id: string): string {
  return `${id}${key}`;
}
