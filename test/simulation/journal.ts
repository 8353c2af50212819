import type { TestClock } from "../../src/entries/testing/clock.js";
import { MemoryServer } from "../../src/entries/testing/memory-server.js";
import type { Reply } from "../../src/entries/testing/reply.js";
import { scriptOf } from "./planting.js";

/** What happened in a simulation: a hash of everything, and the text if a reader wants it. */
export class Journal {
  /** The lines, for a run that is read. */
  readonly lines: string[] | undefined;
  #low = 0x811c9dc5;
  #high = 0x9e3779b9;

  constructor(isRead: boolean) {
    this.lines = isRead ? [] : undefined;
  }

  /** 64 bits as hex digits: FNV-1a from two start values. */
  get hash(): string {
    return [this.#high, this.#low].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  }

  write(now: number, text: string): void {
    const line = `${now.toFixed(3)} ${text}`;
    this.lines?.push(line);
    for (let i = 0; i < line.length; i++) {
      const code = line.charCodeAt(i);
      this.#low = Math.imul(this.#low ^ code, 0x01000193);
      this.#high = Math.imul(this.#high ^ code, 0x01000193) + 1;
    }
  }
}

const FORCES = ["plain/force", "fair/force", "read/force", "write/force"].map(scriptOf);

/** Whether a command takes a lock away by force. */
export function isForce([name = "", script = ""]: readonly string[]): boolean {
  return /^eval/i.test(name) && FORCES.some(({ text, sha1 }) => text === script || sha1 === script);
}

/** A server that reports each command and its reply. */
export class TracedServer extends MemoryServer {
  readonly #tell: (text: string, command: readonly string[]) => void;

  constructor(clock: TestClock, tell: (text: string, command: readonly string[]) => void) {
    super(clock);
    this.#tell = tell;
  }

  override execute(command: readonly string[]): Reply {
    const [name = "", script = "", ...rest] = command;
    // INFO contains the server's run id, which differs each time, so it is not reported.
    if (/^info$/i.test(name)) return super.execute(command);
    const what = /^eval$/i.test(name) ? `EVAL of ${script.length}` : `${name} ${script.slice(0, 8)}`;
    try {
      const reply = super.execute(command);
      this.#tell(`${what} ${rest.join(" ")} → ${told(reply)}`, command);
      return reply;
    } catch (error) {
      this.#tell(`${what} ${rest.join(" ")} → ${String(error)}`, command);
      throw error;
    }
  }
}

function told(reply: Reply): string {
  return Array.isArray(reply) ? `[${reply.map(told).join(" ")}]` : String(reply);
}
