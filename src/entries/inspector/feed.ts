/** Looks at the locks, once for all viewers, and tells them what has changed. Without viewers it does nothing. */

import { isLockError } from "../../base/errors.js";
import { clearTimeout, LONGEST_TIMER, setTimeout, wallTime } from "../../base/platform.js";
import type { LockClient, LockInfo } from "../../index.js";
import { force } from "../shared/kinds.js";
import { changesOf, type Look } from "./changes.js";
import { History } from "./history.js";

/** The stream of one who looks on. */
export type Viewer = ReadableStreamDefaultController<Uint8Array>;

/** False while the viewer has not read what was sent before. */
function isReady({ desiredSize }: Viewer): boolean {
  return (desiredSize ?? 0) > 0;
}

/** The most locks in one message: the page can show the first locks while others are on their way. */
const CHUNK = 500;
/** After a look the feed rests four times as long: it spends at most a fifth of the time looking. Not after one without answer. */
const REST = 4;
const encoder = new TextEncoder();

export class Feed {
  readonly #client: LockClient;
  readonly #every: number;
  readonly #limit: number;
  readonly #history: History;
  /** True for a viewer that has been sent everything up to now. */
  readonly #viewers = new Map<Viewer, boolean>();
  /** Settles when all looks and unlocks that were asked for are over. */
  #turn: Promise<unknown> = Promise.resolve();
  #next: Promise<Look> | undefined;
  /** The look that the viewers have been told of. */
  #last: Look | undefined;
  #timer: NodeJS.Timeout | undefined;
  #unfollow: (() => void) | undefined;

  /** `every`: milliseconds between two looks, at least; `limit`: locks that are looked at. */
  constructor(client: LockClient, every: number, limit: number) {
    this.#client = client;
    this.#every = every;
    this.#limit = limit;
    this.#history = new History(client);
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** A look that begins after the call; calls before it begins share it. */
  look(): Promise<Look> {
    this.#next ??= this.#inTurn(() => {
      this.#next = undefined;
      return this.#look();
    });
    return this.#next;
  }

  /** Tells the viewer all there is, and then each change, until {@link leave} or {@link end}. */
  watch(viewer: Viewer): void {
    this.#viewers.set(viewer, false);
    this.#unfollow ??= this.#history.follow();
    if (this.#last) this.#tellAll(viewer, this.#last);
    if (this.#viewers.size === 1) void this.#goOn();
  }

  /** Takes a lock from its holders, and tells viewers if anybody held it. Resolves with whether anybody did. */
  unlock(info: LockInfo): Promise<boolean> {
    return this.#inTurn(async () => {
      const unlocked = await force(this.#client, info);
      if (!unlocked) return false;
      this.#history.unlocked(info);
      const ownerIds = info.holders.map(({ ownerId }) => ownerId);
      this.#tell("unlocked", { at: wallTime(), name: info.name, ownerIds });
      return true;
    });
  }

  /** One after the other: of a lock that a look shows during an unlock, nobody could tell whether it is unlocked yet. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** Ends the stream of a viewer, unless the viewer has left. */
  end(viewer: Viewer): void {
    if (this.leave(viewer)) viewer.close();
  }

  /** False if the viewer has left before. */
  leave(viewer: Viewer): boolean {
    if (!this.#viewers.delete(viewer)) return false;
    if (this.#viewers.size === 0) this.#rest();
    return true;
  }

  /** Nobody looks on any more. */
  #rest(): void {
    clearTimeout(this.#timer);
    this.#history.take();
    this.#last = undefined;
    this.#unfollow?.();
    this.#unfollow = undefined;
  }

  async #look(): Promise<Look> {
    const locks: LockInfo[] = [];
    let truncated = false;
    for await (const info of this.#client.list({ kinds: "all" })) {
      truncated = locks.length === this.#limit;
      if (truncated) break;
      locks.push(info);
    }
    // A part of the locks does not show which of the others have gone.
    if (this.#unfollow && !truncated) this.#history.compare(locks);
    return { at: wallTime(), locks, truncated };
  }

  async #goOn(): Promise<void> {
    const began = wallTime();
    let rest = this.#every;
    try {
      const look = await this.look();
      if (this.#viewers.size === 0) return;
      this.#tellLook(look);
      rest = Math.max(rest, REST * (wallTime() - began));
    } catch (error) {
      const code = isLockError(error) ? error.code : "FAILED";
      this.#tellTrouble(code);
      if (code === "CLIENT_CLOSED") {
        for (const viewer of [...this.#viewers.keys()]) this.end(viewer);
      }
    }
    if (this.#viewers.size === 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#goOn(), Math.min(rest, LONGEST_TIMER));
    this.#timer.unref();
  }

  #tellLook(look: Look): void {
    const changes = this.#last && changesOf(this.#last, look);
    this.#last = look;
    if (changes) this.#tell("locks", changes);
    this.#tellHistory();
    for (const [viewer, current] of this.#viewers) {
      if (!current && isReady(viewer)) this.#tellAll(viewer, look);
    }
  }

  #tellAll(viewer: Viewer, { at, locks, truncated }: Look): void {
    // All entries are told below, so none of them may come once more after that.
    this.#tellHistory();
    for (let i = 0; i === 0 || i < locks.length; i += CHUNK) {
      const changed = locks.slice(i, i + CHUNK);
      viewer.enqueue(message("locks", { at, reset: i === 0, total: locks.length, truncated, changed }));
    }
    viewer.enqueue(message("history", this.#history.entries));
    this.#viewers.set(viewer, true);
  }

  #tellHistory(): void {
    const entries = this.#history.take();
    if (entries.length > 0) this.#tell("history", entries);
  }

  /** Tells every viewer, since one that has seen no lock yet would wait without a word. */
  #tellTrouble(code: string): void {
    const bytes = message("trouble", { at: wallTime(), code });
    for (const viewer of this.#viewers.keys()) if (isReady(viewer)) viewer.enqueue(bytes);
  }

  /** Tells the viewers that are up to date. A viewer that does not keep up is told everything when it does again. */
  #tell(event: string, data: unknown): void {
    const bytes = message(event, data);
    for (const [viewer, current] of this.#viewers) {
      if (current && isReady(viewer)) viewer.enqueue(bytes);
      else this.#viewers.set(viewer, false);
    }
  }
}

function message(event: string, data: unknown): Uint8Array {
  return encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
