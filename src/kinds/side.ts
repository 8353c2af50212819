/** What the two sides of a read-write lock have in common. */
import type { LockKind } from "../base/events.js";
import { readWriteChannel } from "../base/names.js";
import { HashBackend } from "./hash.js";

export class ReadWriteBackend extends HashBackend {
  override get kind(): LockKind {
    return "readwrite";
  }

  protected override channelOf(key: string): string {
    return readWriteChannel(key);
  }

  protected override get undoesTogether(): boolean {
    return false;
  }
}
