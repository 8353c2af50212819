/** The read side of a read-write lock: shared, and each hold has a lease of its own. */
import { readHold, tombstone, waitingWriters, writeField } from "../base/names.js";
import type { Standing } from "../engine/contender.js";
import type { Rest, Try } from "../locks/primitive.js";
import {
  readAcquire,
  readExtend,
  readForce,
  readReenter,
  readRelease,
  readState,
  readUndo,
} from "../scripts/generated.js";
import { type AnyCall, type Ending, HashPrimitive, type PrimitiveParts } from "./hash.js";

export class ReadPrimitive extends HashPrimitive {
  override readonly kind = "readwrite";
  override readonly side = "read";
  override readonly sharing = "shared";
  override readonly standing: Standing = { places: false, marked: false, together: true };
  readonly #yields: boolean;

  /** `yields`: whether it lets waiting writers go first. */
  constructor(parts: PrimitiveParts, yields: boolean) {
    super(parts);
    this.#yields = yields;
  }

  override besides(wireId: string, count: number): readonly string[] {
    return Array.from({ length: count }, (_, i) => readHold(this.key, wireId, i + 1));
  }

  protected override acquiring({ wireId, lease }: Try): AnyCall {
    const { key: lock } = this;
    const keys = {
      lock,
      tombstone: tombstone(lock, wireId),
      hold: readHold(lock, wireId, 1),
      writers: waitingWriters(lock),
    };
    return this.call({
      script: readAcquire,
      keys,
      args: { owner: wireId, lease, yield: this.#yields ? 1 : 0 },
    });
  }

  protected override reentering(wireId: string, over: string, count: number, lease: number): AnyCall {
    const keys = { lock: this.key, tombstone: over };
    const args = { owner: wireId, field: writeField(wireId), count, lease };
    return this.call({ script: readReenter, keys, args });
  }

  protected override releasing(ending: Ending): AnyCall {
    const keys = this.keysWith(ending.over);
    return this.call({ script: readRelease, keys, args: this.#ending(ending) });
  }

  protected override undoing(ending: Ending): AnyCall {
    const keys = this.keysWith(ending.over);
    return this.call({ script: readUndo, keys, args: this.#ending(ending) });
  }

  protected override extending(wireId: string, over: string, { terms, left }: Rest): AnyCall {
    const keys = { lock: this.key, tombstone: over };
    return this.call({ script: readExtend, keys, args: { owner: wireId, left, terms } });
  }

  protected override forcing(over: string): AnyCall {
    return this.call({ script: readForce, keys: this.keysWith(over), args: this.forceArguments });
  }

  protected override stating(wireId: string): AnyCall {
    return this.call({
      script: readState,
      keys: { locks: [this.key, this.channel] },
      args: { owner: wireId },
    });
  }

  #ending(ending: Ending) {
    const { count, ...args } = this.ending(ending);
    return { ...args, terms: count > 0 ? ending.rest.terms : [] };
  }
}
