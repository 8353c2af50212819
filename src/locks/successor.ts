/** A call that waits in the giver's process, and is to be granted the lock by the command that gives it back. */
import { type Instant, instant } from "../base/clock.js";
import type { RedisUnavailableError } from "../base/errors.js";
import type { Passed, Successor } from "../engine/acquisition.js";
import type { Acquired } from "./backend.js";
import { inOrder } from "./commands.js";
import type { OwnerLock } from "./owner-lock.js";
import { noop, quietly } from "./work.js";

export interface LocalSuccessorOptions {
  /** What the call rejects with that got no answer. */
  readonly unavailable: () => RedisUnavailableError;
  readonly wireId: string;
  /** Milliseconds. */
  readonly lease: number;
  /** When the command is sent. */
  readonly sent: Instant;
  readonly own: number | undefined;
  /** Whether the call has no use for the lock any more. */
  readonly gone: () => boolean;
}

export class LocalSuccessor implements Successor {
  readonly wireId: string;
  readonly lease: number;
  readonly sent: Instant;
  readonly own: number | undefined;
  /** What came of it for the successor. Rejects UNAVAILABLE without an answer in time. */
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
    // Nobody may be there any more to hear it.
    this.acquired.catch(noop);
  }

  get gone(): boolean {
    return this.#options.gone();
  }

  settle({ granted, token, others }: Passed): void {
    this.settled = true;
    this.late = this.#silent;
    // With nobody to go before it, it has reason to try again at once.
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
  /** Of its wire id; minted at the first try, and anew once that has been undone. */
  number: number | undefined;
  /** Nobody waits for its result any more. */
  readonly over: boolean;
}

/** The command is about to be sent. `own`: see {@link Successor}. */
export function successorOf(call: WaitingCall, own: number | undefined): LocalSuccessor {
  const { env } = call.own.table;
  call.number ??= env.mint();
  const { lockName, lease, number } = call;
  const unavailable = () => env.runner.unavailable(lockName);
  const gone = () => call.over || call.number !== number;
  const [wireId, sent] = [env.wireId(number), instant(env.clock)];
  const successor = new LocalSuccessor({ unavailable, wireId, lease, own, gone, sent });
  // What the owner calls from here on goes behind it, also if the call gives up before its try.
  if (call.own.owner) void inOrder(call.own, () => quietly(successor.acquired));
  return successor;
}
