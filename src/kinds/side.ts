/** What the two sides of a read-write lock have in common. */
import type { LockKind } from "../base/events.js";
import { readWriteChannel } from "../base/names.js";
import { HashBackend } from "./hash.js";

export class ReadWriteBackend extends HashBackend {
  override get kind(): LockKind {
    return "readwrite";
  }

  override get channel(): string {
    return readWriteChannel(this.key);
  }

  protected override get undoesTogether(): boolean {
    return false;
  }
}
