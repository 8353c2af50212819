/** The write side of a read-write lock: exclusive; where writers go first, those who wait are marked on the server. */
import { tombstone, waitingWriters, writeField } from "../base/names.js";
import type { Standing } from "../engine/contender.js";
import type { Try } from "../locks/primitive.js";
import { writeAcquire, writeForce, writeRelease, writeState, writeUndo } from "../scripts/generated.js";
import { type AnyCall, type Ending, HashPrimitive, type PrimitiveParts } from "./hash.js";
import { patience } from "./patience.js";

export class WritePrimitive extends HashPrimitive {
  override readonly kind = "readwrite";
  override readonly side = "write";
  override readonly standing: Standing;

  /** `first`: whether it goes before readers that come later. */
  constructor(parts: PrimitiveParts, first: boolean) {
    super(parts);
    this.standing = { places: false, marked: first, together: false };
  }

  override field(wireId: string): string {
    return writeField(wireId);
  }

  protected override acquiring({ wireId, lease, fellows }: Try): AnyCall {
    const { key: lock, standing } = this;
    const keys = { lock, tombstone: tombstone(lock, wireId), writers: waitingWriters(lock) };
    const args = {
      owner: wireId,
      field: writeField(wireId),
      lease,
      patience: fellows && standing.marked ? patience(this.env.settings) : 0,
    };
    return this.call({ script: writeAcquire, keys, args });
  }

  protected override releasing(ending: Ending): AnyCall {
    const keys = this.keysWith(ending.over);
    return this.call({ script: writeRelease, keys, args: this.#ending(ending) });
  }

  protected override undoing(ending: Ending): AnyCall {
    const keys = { ...this.keysWith(ending.over), writers: waitingWriters(this.key) };
    return this.call({ script: writeUndo, keys, args: this.#ending(ending) });
  }

  protected override forcing(over: string): AnyCall {
    return this.call({ script: writeForce, keys: this.keysWith(over), args: this.forceArguments });
  }

  protected override stating(wireId: string): AnyCall {
    return this.call({ script: writeState, keys: { lock: this.key }, args: { field: writeField(wireId) } });
  }

  #ending(ending: Ending) {
    const { wireId } = ending;
    return { ...this.ending(ending), owner: wireId, field: writeField(wireId) };
  }
}
