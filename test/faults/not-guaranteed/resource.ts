/**
 * A lock guards two registers here. One takes every write. The other, like a table with a `fence` column, remembers the
 * highest token of each master and refuses a lower one.
 */
/** A FencedHold, or a token that another process has sent. */
interface Token {
  readonly token: bigint;
}

export class Resource {
  /** The last writer of the register that compares nothing. */
  unfenced = "";
  /** The last writer of the register that compares tokens. */
  fenced = "";
  #highest: bigint[] = [];

  /** Writes to both; true if the fenced one took it. A group of locks has a token for each master, or none. */
  write(who: string, ...holds: readonly (Token | undefined)[]): boolean {
    this.unfenced = who;
    const late = holds.some((hold, i) => hold !== undefined && hold.token < (this.#highest[i] ?? 0n));
    if (late) return false;
    for (const [i, hold] of holds.entries()) if (hold !== undefined) this.#highest[i] = hold.token;
    this.fenced = who;
    return true;
  }
}
