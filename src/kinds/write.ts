/** The write side of a read-write lock: exclusive. Where writers go first, the server knows which writers wait. */
import { tombstone, waitingWriters, writeField } from "../base/names.js";
import type { QueueTraits, Successor } from "../engine/acquisition.js";
import type { Rest, Side, Try } from "../locks/backend.js";
import {
  writeAcquire,
  writeOldForce,
  writeOldPass,
  writeRelease,
  writeState,
  writeUndo,
} from "../scripts/generated.js";
import { aliveFor } from "./alive-for.js";
import { type AnyCall, type Ending, forceArguments } from "./calls.js";
import type { BackendParts } from "./hash.js";
import { passArguments, passKeys } from "./passing.js";
import { ReadWriteBackend } from "./side.js";
import type { Undoing } from "./undoing.js";

const FIRST: QueueTraits = { serverQueued: false, advertised: true, shared: false, handoff: true };
const LIKE_OTHERS: QueueTraits = { serverQueued: false, advertised: false, shared: false, handoff: true };

export class WriteBackend extends ReadWriteBackend {
  /** `first`: whether a waiting writer goes before readers that come later. */
  constructor(parts: BackendParts, first: boolean) {
    super(parts, first ? FIRST : LIKE_OTHERS);
  }

  override get side(): Side {
    return "write";
  }

  override field(wireId: string): string {
    return writeField(wireId);
  }

  /**
   * When a writer gives up, the next writer of this process tries in the same tick. The undo is sent behind that try, so
   * that readers of other processes see a waiting writer at all times.
   */
  override async undo(wireId: string, callId: string | undefined, rest: () => Rest): Promise<unknown> {
    if (callId === undefined && this.traits.advertised) await Promise.resolve();
    return super.undo(wireId, callId, rest);
  }

  protected override acquiring({ wireId, lease, coWaiters }: Try): AnyCall {
    const { key: lock, traits } = this;
    const keys = { lock, tombstone: tombstone(lock, wireId), writers: waitingWriters(lock) };
    const args = {
      owner: wireId,
      field: writeField(wireId),
      lease,
      aliveFor: coWaiters && traits.advertised ? aliveFor(this.env.settings) : 0,
    };
    return this.call(writeAcquire, keys, args);
  }

  protected override releasing(ending: Ending): AnyCall {
    const keys = this.keysWith(ending.over);
    return this.call(writeRelease, keys, this.#ending(ending));
  }

  protected override passing(wireId: string, successor: Successor): AnyCall {
    const keys = { writers: waitingWriters(this.key), ...passKeys(this, wireId, successor) };
    const args = {
      field: writeField(wireId),
      successorField: writeField(successor.wireId),
      aliveFor: this.traits.advertised ? aliveFor(this.env.settings) : 0,
      ...passArguments(this.publish, wireId, successor),
    };
    return this.call(writeOldPass, keys, args);
  }

  protected override undoing({ wireIds: [wireId = ""], overs: [over = ""], rest }: Undoing): AnyCall {
    const keys = { writers: waitingWriters(this.key), ...this.keysWith(over) };
    return this.call(writeUndo, keys, this.#ending({ wireId, over, rest }));
  }

  protected override forcing(over: string): AnyCall {
    return this.call(writeOldForce, this.keysWith(over), forceArguments(this.publish));
  }

  protected override stating(wireId: string): AnyCall {
    return this.call(writeState, { lock: this.key }, { field: writeField(wireId) });
  }

  #ending(ending: Ending) {
    const { wireId } = ending;
    return { field: writeField(wireId), ...this.ending(ending), owner: wireId };
  }
}
