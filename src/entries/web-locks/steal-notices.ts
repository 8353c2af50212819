/**
 * Tells a process that a lock was stolen from it: those who hold a lock are not woken by anything, and
 * would learn it at their next renewal only.
 *
 * A process whose locks are held for longer than a moment takes a lock of its own, and waits for it as
 * well, as another owner. Who steals from it releases that lock by force, too: the message of the release
 * wakes the waiter, which then looks after all that is held here. If the process dies, the lock lapses with
 * the others.
 */
import { AsyncResource } from "node:async_hooks";
import { clearTimeout, setTimeout } from "../../base/platform.js";
import { isLockError, type LockClient, type LockErrorCode, type LockInfo, Owner } from "../../index.js";

/** Milliseconds: most locks are held for less, and need none of this. */
const SHORT = 250;

/** What the next try may be spared: Redis or its replicas gave no answer in time, or the grant came too late. */
const PASSING: readonly LockErrorCode[] = ["UNAVAILABLE", "REPLICAS", "LOCK_LOST"];

export interface StealNoticesOptions {
  readonly client: LockClient;
  /** Has all that is held looked after. */
  readonly check: () => void;
}

export class StealNotices {
  readonly #options: StealNoticesOptions;
  /** Nobody's in particular: what goes on for long is not to keep what the context of a request has. */
  readonly #context = new AsyncResource("holdfast.steal-notices");
  /** How many locks are held. */
  #held = 0;
  #timer: NodeJS.Timeout | undefined;
  #stop: AbortController | undefined;
  /** It is forbidden, or the client is closed. */
  #isOff = false;

  constructor(options: StealNoticesOptions) {
    this.#options = options;
  }

  /** One more is held from now on. */
  begin(): void {
    this.#held++;
    this.#arm();
  }

  /** One is not held any more. */
  end(): void {
    if (--this.#held === 0) this.#disarm();
  }

  /** To those whose holds were released by force. */
  tell(holders: LockInfo["holders"]): void {
    const { client } = this.#options;
    const ids = new Set(holders.map(({ ownerId }) => clientIdOf(ownerId)));
    // This process was told already.
    ids.delete(client.id);
    for (const id of ids) void quietly(async () => client.getLock(nameFor(id)).forceUnlock());
  }

  #arm(): void {
    if (this.#timer || this.#stop || this.#isOff) return;
    this.#context.runInAsyncScope(() => {
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

  /** Holds the lock until the next turn has it, which waits for it: then somebody released it by force. */
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
        void this.#context.runInAsyncScope(() => this.#turn(stop, end));
      });
    };
    try {
      await client.getLock(nameFor(client.id)).run(held, { owner: new Owner(), signal });
    } catch (error) {
      // Held and lost by force, as it should be: the next turn goes on.
      if (signal.aborted || isHeld) return;
      this.#isOff = !PASSING.some((code) => isLockError(error, code));
      this.#disarm();
      if (this.#held > 0) this.#arm();
    }
  }
}

/** `clientId:n` is of whom? */
export function clientIdOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.lastIndexOf(":"));
}

/** No request can have such a name. */
function nameFor(clientId: string): string {
  return `-web-locks:${clientId}`;
}

async function quietly(work: () => Promise<unknown>): Promise<void> {
  await work().catch(() => {
    // It is learnt with the next renewal.
  });
}
