/** The read side of a read-write lock: shared, and each hold has a lease of its own. */
import { readHold, writeField } from "../base/names.js";
import type { QueueTraits } from "../engine/acquisition.js";
import type { Acquired, Backend, Rest, Side, Try } from "../locks/backend.js";
import {
  readExtend,
  readOldForce,
  readReenter,
  readRelease,
  readState,
  readUndo,
} from "../scripts/generated.js";
import type { Renewer } from "../watchdog/watchdog.js";
import { type AnyCall, type Ending, forceArguments } from "./calls.js";
import type { BackendParts } from "./hash.js";
import { type Readers, type Reading, readAnswers, readersCall } from "./readers.js";
import { ReadWriteBackend } from "./side.js";
import type { Undoing } from "./undoing.js";

const BEHIND: Acquired = { granted: false, ttl: -1 };
const TRAITS: QueueTraits = { serverQueued: false, advertised: false, shared: true, handoff: false };

export class ReadBackend extends ReadWriteBackend {
  readonly #readers: Readers;
  readonly #writers: Backend | undefined;

  /** `writers`: the write side, if its waiters go before these readers; else undefined. */
  constructor(parts: BackendParts, readers: Readers, writers: Backend | undefined) {
    super(parts, TRAITS);
    this.#readers = readers;
    this.#writers = writers;
  }

  override get side(): Side {
    return "read";
  }

  override get renewer(): Renewer {
    return this.env.renewers.read;
  }

  override extraKeys(wireId: string, count: number): readonly string[] {
    return Array.from({ length: count }, (_, i) => readHold(this.key, wireId, i + 1));
  }

  override acquire(attempt: Try): Promise<Acquired> {
    if (this.#isBehind(attempt)) return Promise.resolve(BEHIND);
    if (this.env.replicas) return super.acquire(attempt);
    return this.#readers.acquire(this.#reading, attempt);
  }

  protected override acquiring(attempt: Try): AnyCall {
    return readersCall(this.#reading, [attempt]);
  }

  protected override readAcquired(reply: unknown): Acquired {
    return readAnswers(reply, 1)[0] as Acquired;
  }

  protected override reentering(wireId: string, over: string, count: number, lease: number): AnyCall {
    const keys = { lock: this.key, tombstone: over };
    const args = { owner: wireId, field: writeField(wireId), count, lease };
    return this.call(readReenter, keys, args);
  }

  protected override releasing(ending: Ending): AnyCall {
    const keys = this.keysWith(ending.over);
    return this.call(readRelease, keys, this.#ending(ending));
  }

  protected override undoing({ wireIds: [wireId = ""], overs: [over = ""], rest }: Undoing): AnyCall {
    const keys = this.keysWith(over);
    return this.call(readUndo, keys, this.#ending({ wireId, over, rest }));
  }

  protected override extending(wireId: string, over: string, { terms, left }: Rest): AnyCall {
    const keys = { lock: this.key, tombstone: over };
    return this.call(readExtend, keys, { owner: wireId, left, terms });
  }

  protected override forcing(over: string): AnyCall {
    return this.call(readOldForce, this.keysWith(over), forceArguments(this.publish));
  }

  protected override stating(wireId: string): AnyCall {
    return this.call(readState, { locks: [this.key, this.channel] }, { owner: wireId });
  }

  /**
   * Whether a writer that waits in this client goes first. The server forgets that writer while the process stands still,
   * so the client checks its own queue, too. A reader that was perhaps granted already must ask the server all the same:
   * the writer waits for that grant to end.
   */
  #isBehind({ again }: Try): boolean {
    return !again && !!this.#writers && this.env.engine.hasWaiters(this.#writers.queueName, this.queueName);
  }

  get #reading(): Reading {
    return { lockName: this.lockName, key: this.key, yields: !!this.#writers };
  }

  #ending(ending: Ending) {
    const { count, ...args } = this.ending(ending);
    return { terms: count > 0 ? ending.rest.terms : [], ...args };
  }
}
