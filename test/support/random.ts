/** Random-looking numbers that the same seed produces again. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  /** Some of the choices, each at most once, in their order. */
  some<T>(choices: readonly T[], share = 0.5): T[] {
    return choices.filter(() => this.chance(share));
  }

  /** `least` to `most` of the choices, which may repeat. */
  many<T>(choices: readonly T[], least: number, most: number): T[] {
    return Array.from({ length: least + this.below(most - least + 1) }, () => this.pick(choices));
  }
}
