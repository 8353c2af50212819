/**
 * A number in Redis that calls change and wait for: free permits, or the count of a latch. Owns how such calls are
 * sent.
 *
 * These calls have no owner whose field in a hash would show that a call was executed. So each call has a marker, a key
 * of its own that lapses. A call that takes something and gets no answer is undone in the background. A call that gives
 * something goes on in the background, but only while its marker is sure to be there. To give twice would be worse than
 * not at all.
 */

import { checkInteger } from "../base/arguments.js";
import { tellCaller } from "../base/caller.js";
import { elapsedSince, instant } from "../base/clock.js";
import { LockTimeoutError } from "../base/errors.js";
import type { Details, LockEvent, LockEventName, LockEvents, LockKind } from "../base/events.js";
import { callTombstone, latchChannel, permitLeases, semaphoreChannel } from "../base/names.js";
import type { Traits } from "../base/traits.js";
import { noop } from "../base/work.js";
import type { Env } from "../env.js";
import { counterInspect, counterTrySet, semaphoreRelease } from "../scripts/generated.js";
import { type InspectedNumber, readNumber } from "../scripts/inspected.js";
import type { ScriptCall } from "../scripts/script.js";
import type { Wanted } from "../waiting/wanted.js";
import type { ServerClock } from "./server-clock.js";

/** Milliseconds for which a call may be sent again after its first execution. */
export const MARKER_TTL = 60_000;
/**
 * Milliseconds for which a call that gives something may be run: later its marker might be gone. The script itself
 * checks that by the server's clock, because ioredis sends commands that it has kept whenever it gets through.
 */
const LONGEST_WORK = 40_000;
/** The reply of a script that was run too late. */
const TOO_LATE = -1;

const COUNTED: Traits = {};
/** Its opening takes nothing from those who wait for it. */
const LATCH: Traits = { shared: true };

export class SharedNumber implements Wanted {
  readonly env: Env;
  readonly kind: LockKind;
  readonly lockName: string;
  readonly key: string;
  readonly channel: string;
  readonly traits: Traits;
  readonly #serverClock: ServerClock;

  constructor(env: Env, kind: LockKind, lockName: string, key: string, serverClock: ServerClock) {
    this.env = env;
    this.kind = kind;
    this.lockName = lockName;
    this.key = key;
    this.#serverClock = serverClock;
    const isLatch = kind === "latch";
    this.channel = isLatch ? latchChannel(key, env.runner.isCluster) : semaphoreChannel(key);
    this.traits = isLatch ? LATCH : COUNTED;
  }

  get siteName(): string {
    return `${this.kind}/${this.key}`;
  }

  get about(): LockEvent {
    return { lockName: this.lockName, kind: this.kind };
  }

  get parts(): readonly SharedNumber[] {
    return [this];
  }

  /** The command that announces; known once the runner is prepared. */
  get publish(): "PUBLISH" | "SPUBLISH" {
    return this.env.runner.publishCommand;
  }

  /** The marker's key of a new call. */
  marker(): string {
    return callTombstone(this.key, this.env.wireId());
  }

  /** Sends a call until Redis has answered; it is made anew each time. */
  callUntilAnswered(make: () => ScriptCall): Promise<number> {
    return this.env.runner.callUntilAnswered(this.lockName, make, Number);
  }

  /** Gives back what the call of this id took or may yet take, until Redis has answered. */
  undo(id: string, undoing: (id: string) => ScriptCall): Promise<unknown> {
    const { env, key, kind } = this;
    const undo = ([first = ""]: readonly string[]) => {
      const call = undoing(first);
      return this.callUntilAnswered(() => call);
    };
    return env.runner.cleanUp.add(id, { key, name: `${kind}/${key}`, together: false, undo });
  }

  /** Permits may be given back while the client closes, but not later. @throws CLIENT_CLOSED */
  assertNotEnded(): void {
    if (this.env.ended) this.env.assertOpen(this.lockName);
  }

  /**
   * Makes a change that goes on in the background if Redis gives no answer in time; the event `error` comes if it fails
   * then. The call is made for each try, with the time of the server's clock until which it may be run. `done`: called when
   * Redis has answered, however late. Allowed while the client closes, since permits have to be given back.
   * @throws as {@link goOn}
   */
  give(make: (latest: number) => ScriptCall, done: () => void = noop): Promise<number> {
    const { runner, clock } = this.env;
    const begun = instant(clock);
    const left = () => LONGEST_WORK - elapsedSince(clock, begun);
    return this.goOn(async () => {
      for (;;) {
        const word = await runner.callUntilAnswered(
          this.lockName,
          () => make(this.#serverClock.in(this.key, left())),
          this.#readWord,
          left(),
        );
        if (word !== TOO_LATE) {
          done();
          return word;
        }
        // Otherwise the client did not know the server's clock. This answer told it, so the next try can be run.
        if (left() < 0) throw runner.unavailable(this.lockName);
      }
    });
  }

  /**
   * Runs work that goes on in the background if Redis gives no answer in time; the event `error` comes if it fails then.
   * @throws UNAVAILABLE without an answer, CLIENT_CLOSED
   */
  async goOn<T>(begin: () => Promise<T>): Promise<T> {
    const { env, lockName } = this;
    const { runner } = env;
    this.assertNotEnded();
    const work = begin();
    let isOpen = true;
    const over = () => {
      isOpen = false;
    };
    work.then(over, over);
    env.settle(work);
    return runner.withTimeout(lockName, work).catch((error: unknown) => {
      if (isOpen) work.catch((cause: unknown) => this.emit("error", { cause }));
      return tellCaller(error);
    });
  }

  /** Reads `{word, time}`. */
  readonly #readWord = (reply: unknown): number => {
    const [word = TOO_LATE, seconds = 0] = (reply as unknown[]).map(Number);
    this.#serverClock.hear(this.key, seconds);
    return word;
  };

  /** The error of a run whose wait is over; `had`: what the semaphore had. */
  tooFew(had: string, waited: number): LockTimeoutError {
    const what = `semaphore "${this.lockName}" had ${had}`;
    const cure = "wait longer, or call trySetPermits() first, if nobody ever has";
    return new LockTimeoutError(this.lockName, waited, { what, cure });
  }

  /** Sends a call that reads, or that is as good as once when it is sent again. */
  async ask<T>(make: () => ScriptCall, read: (reply: unknown) => T): Promise<T> {
    const { env, lockName } = this;
    env.assertOpen(lockName);
    return env.runner.call(lockName, make, read).catch(tellCaller);
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
    const marker = this.marker();
    const make = (latest: number) =>
      counterTrySet.with(
        [this.key, this.channel, marker],
        [count, message, MARKER_TTL, latest, this.publish],
      );
    return (await this.give(make)) === 1;
  }

  /** Makes more permits. */
  async addPermits(permits: number): Promise<void> {
    const count = checkInteger(permits, "permits", 1);
    this.env.assertOpen(this.lockName);
    // Redisson's message for new permits with a lease is how many are new; for all others it is how many are free.
    await this.add(count, this.kind === "permits" ? String(count) : "");
  }

  /**
   * Gives back permits that were taken. The event `released` comes when Redis has answered, however late; `held`:
   * milliseconds since the grant.
   */
  giveBack(count: number, held?: number): Promise<void> {
    const released = () => this.emit("released", held === undefined ? {} : { held });
    return this.add(count, "", released);
  }

  /** Adds permits, given back or new: Redis does not tell these apart. `message`: what waiters are told; empty for the total. */
  async add(count: number, message: string, done?: () => void): Promise<void> {
    const marker = this.marker();
    const make = (latest: number) =>
      semaphoreRelease.with(
        [this.key, this.channel, marker],
        [count, message, MARKER_TTL, latest, this.publish],
      );
    await this.give(make, done);
  }

  emit<E extends LockEventName>(event: E, more: Details<E>): void {
    this.env.events.emit(event, { ...this.about, ...more } as LockEvents[E]);
  }
}

/** @throws TypeError for a constructor that a user called; `getter` is what to call instead */
export function checkNumber(number: unknown, getter: string): void {
  if (number instanceof SharedNumber) return;
  throw new TypeError(`create it by client.${getter}(name), not by new`);
}
