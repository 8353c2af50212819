/** One call of the redlock API: its attempts, and the errors of redlock in the place of LockErrors. */
import { monotonic, setTimeout } from "../../base/platform.js";
import { type Hold, isLockError, type LockError } from "../../index.js";
import { ExecutionError, type ExecutionStats } from "./errors.js";
import type { Master } from "./masters.js";
import { pauseOf, type Settings, waitOf } from "./settings.js";
import { noneFor, votesAgainst, votesFor } from "./votes.js";

export interface ExecutionParts {
  readonly masters: readonly Master[];
  /** Called with each vote against. */
  readonly tell: (error: Error) => void;
}

export class Execution {
  readonly attempts: Promise<ExecutionStats>[] = [];
  readonly #parts: ExecutionParts;
  readonly #names: readonly string[];
  readonly #settings: Settings;

  constructor(parts: ExecutionParts, names: readonly string[], settings: Settings) {
    this.#parts = parts;
    this.#names = names;
    this.#settings = settings;
  }

  /**
   * Runs `operation`, again and again as long as `mayPass` is true for its error and the settings allow. `operation`
   * gets the milliseconds that are left. @throws ExecutionError in the place of a LockError
   */
  async run<T>(mayPass: (error: LockError) => boolean, operation: (wait: number) => Promise<T>): Promise<T> {
    const until = monotonic() + waitOf(this.#settings);
    for (;;) {
      try {
        return await operation(Math.max(0, until - monotonic()));
      } catch (error) {
        if (!isLockError(error)) throw error;
        this.failed(error);
        const left = until - monotonic();
        if (left <= 0 || !mayPass(error)) throw this.error(error.message, error);
        await pause(Math.min(left, pauseOf(this.#settings)));
      }
    }
  }

  /** Notes an attempt that has succeeded with these holds. */
  succeeded(holds: readonly Hold[]): void {
    this.#note(votesFor(this.#parts.masters, this.#names, holds));
  }

  /** Notes an attempt that has failed. */
  failed(cause?: LockError): void {
    const isOver = isLockError(cause, "LOCK_LOST") || isLockError(cause, "NOT_OWNER");
    const { masters } = this.#parts;
    this.#note(isOver ? noneFor(masters, this.#names) : votesAgainst(masters, this.#names, cause));
  }

  /** Notes an attempt on a lock that is not held. */
  notHeld(): void {
    this.#note(noneFor(this.#parts.masters, this.#names));
  }

  error(text: string, cause?: LockError): ExecutionError {
    return new ExecutionError(`redlock: ${text}`, this.attempts, cause && { cause });
  }

  #note(stats: Promise<ExecutionStats>): void {
    this.attempts.push(stats);
    void stats.then(({ votesAgainst }) => votesAgainst.forEach(this.#parts.tell));
  }
}

/** Whether another attempt may do better: Redis gave no answer, or its grant came too late. */
export function isPassing({ code }: LockError): boolean {
  return code === "UNAVAILABLE" || code === "QUORUM" || code === "LOCK_LOST";
}

/** Acts on all holds. @throws the first error; LOCK_LOST and NOT_OWNER go first, because a further call meets them again */
export async function onAll(holds: readonly Hold[], act: (hold: Hold) => Promise<void>): Promise<void> {
  const results = await Promise.allSettled(holds.map(act));
  const errors = results.flatMap((result) =>
    result.status === "rejected" ? [result.reason as unknown] : [],
  );
  const final = errors.find((error) => isLockError(error, "LOCK_LOST") || isLockError(error, "NOT_OWNER"));
  if (errors.length > 0) throw final ?? errors[0];
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
