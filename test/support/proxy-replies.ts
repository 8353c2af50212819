/**
 * Which reply of a server answers which command of a connection. Replies come in the order of the commands, but messages
 * and other pushes, which answer no command, come in between. Owns that queue; knows nothing of sockets.
 */
import { decode } from "./resp.js";

/** A command that was sent to the server and is not yet fully answered. */
export interface Unanswered {
  readonly command: readonly string[];
  /** How many replies are still to come: a SUBSCRIBE is answered once for each channel. */
  replies: number;
}

const CONFIRMED = new Set([
  "subscribe",
  "psubscribe",
  "ssubscribe",
  "unsubscribe",
  "punsubscribe",
  "sunsubscribe",
]);
const MESSAGES = new Set(["message", "pmessage", "smessage"]);
/** After these commands the server sends a stream that is no reply, and partly no RESP. */
const STREAMS = new Set(["MONITOR", "SYNC", "PSYNC"]);

const PUSH = 0x3e;
const ARRAY = 0x2a;
const ERROR = 0x2d;

/** True for a command after which the proxy can only pass bytes through. */
export function startsStream(command: readonly string[]): boolean {
  return STREAMS.has(command[0] ?? "");
}

export class ReplyQueue<T extends Unanswered> {
  readonly #waiting: T[] = [];
  #subscriber = false;

  get waiting(): readonly T[] {
    return this.#waiting;
  }

  add(entry: T): void {
    if (this.#verb(entry) !== undefined) {
      this.#subscriber = true;
      entry.replies = Math.max(1, entry.command.length - 1);
    }
    this.#waiting.push(entry);
  }

  /** The command that `frame` answers, undefined for a push; `last` if the answer is now complete. */
  match(frame: Buffer): { readonly entry: T; readonly last: boolean } | undefined {
    const entry = this.#waiting[0];
    if (entry === undefined) return undefined;
    const event = this.#eventOf(frame);
    if (event !== undefined && event !== this.#verb(entry)) return undefined;
    entry.replies = frame[0] === ERROR ? 0 : entry.replies - 1;
    const last = entry.replies <= 0;
    if (last) this.#waiting.shift();
    return { entry, last };
  }

  #verb(entry: T): string | undefined {
    const verb = entry.command[0]?.toLowerCase() ?? "";
    return CONFIRMED.has(verb) ? verb : undefined;
  }

  /** The event that a frame announces, if it is no ordinary reply. RESP2 sends messages as arrays, RESP3 as pushes. */
  #eventOf(frame: Buffer): string | undefined {
    if (frame[0] !== PUSH && !(this.#subscriber && frame[0] === ARRAY)) return undefined;
    const value = decode(frame);
    const event = Array.isArray(value) ? String(value[0]) : "";
    return frame[0] === PUSH || CONFIRMED.has(event) || MESSAGES.has(event) ? event : undefined;
  }
}
