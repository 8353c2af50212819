/**
 * Tells a process that a lock was stolen from it. Nothing wakes the holder of a lock, so it would learn that only at
 * its next renewal.
 *
 * A process that holds a lock for longer than a moment also takes a notice lock of its own. As another owner, it waits
 * for that one as well. A process that steals from it releases its notice lock by force, too. The message of that
 * release wakes the waiter, which then looks after all locks that are held here. If the process dies, its notice lock
 * lapses with the others.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { clearTimeout, setTimeout } from "../../base/platform.js";
import { isLockError, type LockClient, type LockErrorCode, type LockInfo, Owner } from "../../index.js";

/** Milliseconds: most locks are held for less, and need none of this. */
const SHORT = 250;

/** Errors that the next try may not meet: Redis or its replicas gave no answer in time, or the grant came too late. */
const PASSING: readonly LockErrorCode[] = ["UNAVAILABLE", "REPLICAS", "LOCK_LOST"];

/**
 * Runs a function outside all requests. Work that goes on for long must keep neither what the context of a request has,
 * nor that of the call that made the manager. This file is loaded in neither, as a rule.
 */
const outside = AsyncLocalStorage.snapshot();

export interface StealNoticesOptions {
  readonly client: LockClient;
  /** Looks after all locks that are held. */
  readonly check: () => void;
}

export class StealNotices {
  readonly #options: StealNoticesOptions;
  /** How many locks are held. */
  #held = 0;
  #timer: NodeJS.Timeout | undefined;
  #stop: AbortController | undefined;
  /** The server forbids notices, or the client is closed. */
  #isOff = false;

  constructor(options: StealNoticesOptions) {
    this.#options = options;
  }

  /** One more lock is held from now on. */
  begin(): void {
    this.#held++;
    this.#arm();
  }

  /** One lock is not held any more. */
  end(): void {
    if (--this.#held === 0) this.#disarm();
  }

  /** Tells the processes whose holds were released by force. */
  tell(holders: LockInfo["holders"]): void {
    const { client } = this.#options;
    const ids = new Set(holders.map(({ ownerId }) => clientIdOf(ownerId)));
    // This process knows already.
    ids.delete(client.id);
    for (const id of ids) void quietly(async () => client.getLock(nameFor(id)).forceUnlock());
  }

  #arm(): void {
    if (this.#timer || this.#stop || this.#isOff) return;
    outside(() => {
      this.#timer = setTimeout(() => this.#listen(), SHORT);
      this.#timer.unref();
    });
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#stop?.abort();
    this.#stop = undefined;
  }

  #listen(): void {
    this.#timer = undefined;
    this.#stop = new AbortController();
    void this.#turn(this.#stop, () => {});
  }

  /**
   * Holds the notice lock until the next turn, which waits for it, has it: then another process has released it by
   * force.
   */
  async #turn(stop: AbortController, granted: () => void): Promise<void> {
    const { client, check } = this.#options;
    const { signal } = stop;
    let isHeld = false;
    const held = async () => {
      isHeld = true;
      granted();
      check();
      await new Promise<void>((resolve) => {
        if (signal.aborted) return resolve();
        const end = () => {
          signal.removeEventListener("abort", end);
          resolve();
        };
        signal.addEventListener("abort", end);
        void outside(() => this.#turn(stop, end));
      });
    };
    try {
      await client.getLock(nameFor(client.id)).run(held, { owner: new Owner(), signal });
    } catch (error) {
      // The notice lock was held and lost by force, as it should be: the next turn goes on.
      if (signal.aborted || isHeld) return;
      this.#isOff = !PASSING.some((code) => isLockError(error, code));
      this.#disarm();
      if (this.#held > 0) this.#arm();
    }
  }
}

/** The client id in the owner id `clientId:n`. */
export function clientIdOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.lastIndexOf(":"));
}

/** The name of a client's notice lock, which no request can have. */
function nameFor(clientId: string): string {
  return `-web-locks:${clientId}`;
}

async function quietly(work: () => Promise<unknown>): Promise<void> {
  await work().catch(() => {
    // Without the notice the process learns of the loss at its next renewal.
  });
}
