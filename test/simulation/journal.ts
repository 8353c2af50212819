/** What happened in a simulation: a hash of all of it, and its text if somebody wants to read it. */
export class Journal {
  /** Of a run that is to be read. */
  readonly lines: string[] | undefined;
  #low = 0x811c9dc5;
  #high = 0x9e3779b9;

  constructor(isRead: boolean) {
    this.lines = isRead ? [] : undefined;
  }

  /** 64 bits as hex digits: FNV-1a, from two beginnings. */
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
