/**
 * A number in Redis that calls change and wait for: free permits, or the count of a latch. Owns how such calls are
 * sent.
 *
 * These calls have no owner whose field in a hash would show that a call was executed. So each call has a marker, a key
 * of its own that lapses. A call that takes something and gets no answer is undone in the background. A call that gives
 * something goes on in the background, but only while its marker is sure to be there. To give twice would be worse than
 * not at all.
 */
import { elapsed, instant } from "../base/clock.js";
import { LockLostError, LockTimeoutError, tellCaller } from "../base/errors.js";
import type { LockKind } from "../base/events.js";
import { callTombstone, latchChannel, permitLeases, semaphoreChannel } from "../base/names.js";
import { noop } from "../base/work.js";
import type { Env } from "../env.js";
import { counterInspect, counterTrySet, semaphoreRelease } from "../scripts/generated.js";
import { type InspectedNumber, readNumber } from "../scripts/inspected.js";
import type { ScriptCall } from "../scripts/script.js";
import { Wanted } from "../waiting/wanted.js";

/** Milliseconds for which a call may be sent again after its first execution. */
export const MARKER_TTL = 60_000;
/**
 * Milliseconds for which a call that gives something may be run: later its marker might be gone. The script itself
 * checks that by the server's clock, because ioredis sends commands that it has kept whenever it gets through.
 */
const LONGEST_WORK = 40_000;
/** The reply of a script that was run too late. */
const TOO_LATE = -1;

type GivingKeys = [number: string, channel: string, marker: string];
/** What makes a script run once: until when its marker is there, and until when it may be run by the server's clock. */
type Once = [markerTtl: number, latest: number, publish: "PUBLISH" | "SPUBLISH"];

export class SharedNumber extends Wanted {
  readonly kind: LockKind;
  readonly channel: string;

  constructor(env: Env, kind: LockKind, lockName: string, key: string) {
    const isLatch = kind === "latch";
    // The opening of a latch takes nothing from those who wait for it.
    super(env, lockName, key, { side: "only", shared: isLatch });
    this.kind = kind;
    this.channel = isLatch ? latchChannel(key, env.runner.isCluster) : semaphoreChannel(key);
  }

  /** The marker's key of a new call. */
  marker(): string {
    return callTombstone(this.key, this.env.wireId());
  }

  /** Permits may be given back while the client closes, but not later. @throws CLIENT_CLOSED */
  assertNotEnded(): void {
    if (this.env.runner.isClosed) this.env.assertOpen(this.lockName);
  }

  /** Sends a call that reads, or that is as good as once when it is sent again. */
  async ask<T>(make: () => ScriptCall, read: (reply: unknown) => T): Promise<T> {
    const { env, lockName } = this;
    env.assertOpen(lockName);
    return env.runner.call(lockName, make, read).catch(tellCaller);
  }

  /** Sends a call until Redis has answered. */
  untilAnswered(make: () => ScriptCall): Promise<number> {
    return this.env.runner.callUntilAnswered(this.lockName, make, Number);
  }

  /** Gives back in the background, by `undoing`, what the call of this id took or may yet take. Never rejects. */
  undo(id: string, undoing: (id: string) => Promise<unknown>): Promise<void> {
    const { env, key, siteName: name } = this;
    const undo = ([first = ""]: readonly string[]) => undoing(first);
    return env.runner.cleanUp.add(id, { key, name, together: false, undo });
  }

  /**
   * Makes a change that goes on in the background if Redis gives no answer in time. `make` gets the keys and what else each
   * such script is told. `done`: called when Redis has answered, however late.
   * @throws as {@link goOn}
   */
  give(make: (keys: GivingKeys, once: Once) => ScriptCall, done: () => void = noop): Promise<number> {
    const { runner, clock, serverClock } = this.env;
    const { lockName, key } = this;
    const keys: GivingKeys = [key, this.channel, this.marker()];
    const begun = instant(clock);
    const left = () => LONGEST_WORK - elapsed(begun, instant(clock));
    const call = () => make(keys, [MARKER_TTL, serverClock.in(key, left()), this.publish]);
    const read = (reply: unknown) => serverClock.hear(key, reply);
    return this.goOn(async () => {
      let word = TOO_LATE;
      // The first call of a client does not know the server's clock. Its answer tells it, so the next try can be run.
      while (word === TOO_LATE) {
        if (left() < 0) throw runner.unavailable(lockName);
        word = await runner.callUntilAnswered(lockName, call, read, left());
      }
      done();
      return word;
    });
  }

  /**
   * Runs work that goes on in the background if Redis gives no answer in time; the event `error` comes if it fails then.
   * Allowed while the client closes, since permits have to be given back.
   * @throws UNAVAILABLE without an answer, CLIENT_CLOSED
   */
  async goOn<T>(begin: () => Promise<T>): Promise<T> {
    const { lockName } = this;
    const { runner } = this.env;
    this.assertNotEnded();
    const work = begin();
    return runner.withTimeout(lockName, work).catch((error: unknown) => {
      work.catch((cause: unknown) => cause !== error && this.emit("error", { cause }));
      return tellCaller(error);
    });
  }

  /** The number as it is, and how many permits with a lease are out. */
  inspect(): Promise<InspectedNumber> {
    return this.ask(() => this.look(), readNumber);
  }

  /** Asks what {@link readNumber} reads. Where nothing has a lease, the key of leases is one that never exists. */
  look(): ScriptCall {
    const { kind, key, channel } = this;
    const leases = kind === "permits" ? permitLeases(key) : channel;
    return counterInspect.with([key, leases], []);
  }

  /** Sets the number, unless there is one, and tells waiters `message`. Resolves with whether this call set it. */
  async trySet(count: number, message: string = String(count)): Promise<boolean> {
    this.env.assertOpen(this.lockName);
    return (await this.give((keys, once) => counterTrySet.with(keys, [count, message, ...once]))) === 1;
  }

  /**
   * Adds permits, given back or new: Redis does not tell these apart. `message`: what waiters are told; empty for the total.
   * `done`: as of {@link give}.
   */
  async add(count: number, message: string, done?: () => void): Promise<void> {
    await this.give((keys, once) => semaphoreRelease.with(keys, [count, message, ...once]), done);
  }

  /**
   * Runs fn with what `taking` takes. Then `end` gives it back, and resolves with the loss of what was lost meanwhile. What
   * fn throws always wins.
   */
  async run<P, T>(
    taking: Promise<P | undefined>,
    fn: (taken: P) => T | Promise<T>,
    end: (taken: P) => Promise<LockLostError | undefined>,
  ): Promise<T> {
    const { clock } = this.env;
    const begun = clock.mono();
    const taken = await taking;
    if (taken === undefined) {
      const what = `semaphore "${this.lockName}" had too few free permits`;
      const cure = "wait longer, or call trySetPermits() first, if nobody ever has";
      throw new LockTimeoutError(this.lockName, clock.mono() - begun, { what, cure });
    }
    let result: T;
    let lost: LockLostError | undefined;
    try {
      result = await fn(taken);
    } finally {
      lost = await end(taken);
    }
    if (lost) throw new LockLostError(this.lockName, lost.reason, lost.since, { value: result });
    return result;
  }
}

/** @throws TypeError for a constructor that a user called; `getter` is what to call instead */
export function checkNumber(number: unknown, getter: string): void {
  if (number instanceof SharedNumber) return;
  throw new TypeError(`create it by client.${getter}(name), not by new`);
}
