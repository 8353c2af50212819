/** A waiting call of the releasing process, which the release command itself grants the lock. */
import { type Instant, instant } from "../base/clock.js";
import type { RedisUnavailableError } from "../base/errors.js";
import { noop, quietly } from "../base/work.js";
import type { Passed, Successor } from "../engine/acquisition.js";
import type { Acquired } from "./backend.js";
import { inOrder } from "./commands.js";
import type { OwnerLock } from "./owner-lock.js";

export interface LocalSuccessorOptions {
  /** The error of a call that got no answer. */
  readonly unavailable: () => RedisUnavailableError;
  readonly wireId: string;
  /** Milliseconds. */
  readonly lease: number;
  /** When the command is sent. */
  readonly sent: Instant;
  readonly own: number | undefined;
  /** Whether the call does not want the lock any more. */
  readonly gone: () => boolean;
}

export class LocalSuccessor implements Successor {
  readonly wireId: string;
  readonly lease: number;
  readonly sent: Instant;
  readonly own: number | undefined;
  /** The successor's part of the answer. Rejects UNAVAILABLE without an answer in time. */
  readonly acquired: Promise<Acquired>;
  readonly #options: LocalSuccessorOptions;
  settled = false;
  late = false;
  #silent = false;
  #resolve!: (acquired: Acquired) => void;
  #reject!: (error: unknown) => void;

  constructor(options: LocalSuccessorOptions) {
    this.#options = options;
    this.wireId = options.wireId;
    this.lease = options.lease;
    this.sent = options.sent;
    this.own = options.own;
    this.acquired = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // The call may have ended, and then nothing handles the rejection.
    this.acquired.catch(noop);
  }

  get gone(): boolean {
    return this.#options.gone();
  }

  settle({ granted, token, others }: Passed): void {
    this.settled = true;
    this.late = this.#silent;
    // No other process heard of the release, so this call tries again at once.
    this.#resolve(granted ? { granted, token } : { granted, ttl: others > 0 ? -1 : 0, others });
  }

  silent(): void {
    if (this.settled) return;
    this.#silent = true;
    this.#reject(this.#options.unavailable());
  }
}

/** A call that waits for one lock. */
export interface WaitingCall {
  readonly own: OwnerLock;
  readonly lockName: string;
  /** Milliseconds. */
  readonly lease: number;
  /** The number in its wire id; minted at the first try, and again after an undo. */
  number: number | undefined;
  /** The call has ended. */
  readonly over: boolean;
}

/** Makes a waiting call the successor of a release that is about to be sent. `own`: see {@link Successor}. */
export function successorOf(call: WaitingCall, own: number | undefined): LocalSuccessor {
  const { env } = call.own.table;
  call.number ??= env.mint();
  const { lockName, lease, number } = call;
  const unavailable = () => env.runner.unavailable(lockName);
  const gone = () => call.over || call.number !== number;
  const [wireId, sent] = [env.wireId(number), instant(env.clock)];
  const successor = new LocalSuccessor({ unavailable, wireId, lease, own, gone, sent });
  // The owner's later commands go behind it, even if the call gives up before its try.
  if (call.own.owner) void inOrder(call.own, () => quietly(successor.acquired));
  return successor;
}
