/** Reads the new entries of the witness's journals for a line of progress. */
import type { Redis } from "ioredis";

/** Positions of the instants of the call and the grant in an entry: a crowd's entry has the permits before them. */
const INSTANTS = { locks: [3, 4], crowds: [4, 5] } as const;

export class Ticker {
  readonly #witness: Redis;
  readonly #read = new Map<string, number>();
  #acquisitions = 0;
  #longestWait = 0;
  /** Looks run one after the other: two at a time would count the same lines twice. */
  #looking: Promise<void> = Promise.resolve();

  constructor(witness: Redis) {
    this.#witness = witness;
  }

  /** Totals since the start; waits in milliseconds. */
  async read(): Promise<{ readonly acquisitions: number; readonly longestWait: number }> {
    await this.#look();
    return { acquisitions: this.#acquisitions, longestWait: this.#longestWait };
  }

  /** The journals have been read completely and are cleared now. */
  restart(): void {
    this.#read.clear();
  }

  #look(): Promise<void> {
    this.#looking = this.#looking.then(async () => {
      for (const key of await this.#witness.keys("*journal:*")) await this.#readOn(key);
    });
    return this.#looking;
  }

  async #readOn(key: string): Promise<void> {
    const known = this.#read.get(key) ?? 0;
    const lines = await this.#witness.lrange(key, known, -1);
    this.#read.set(key, known + lines.length);
    const [asked, entered] = INSTANTS[key.startsWith("crowd-") ? "crowds" : "locks"];
    for (const line of lines) {
      if (!line.startsWith("E ")) continue;
      const words = line.split(" ");
      this.#acquisitions++;
      const wait = Number(BigInt(words[entered] ?? 0) - BigInt(words[asked] ?? 0)) / 1e6;
      this.#longestWait = Math.max(this.#longestWait, wait);
    }
  }
}
