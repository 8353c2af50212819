/** Ways to break the hand-over policy: each is one change of its text. */

export interface Mutant {
  /** What of the file is replaced; it stands there once. */
  readonly text: string;
  readonly by: string;
}

/** Ways that change nothing: what the policy decides is the same. */
export interface EquivalentMutant extends Mutant {
  readonly because: string;
}

export const MUTANTS: readonly Mutant[] = [
  { text: "const MOST = 16", by: "const MOST = 15" },
  { text: "const MOST = 16", by: "const MOST = 17" },
  { text: "SHORTEST_TURN = 8", by: "SHORTEST_TURN = 7" },
  { text: "SHORTEST_TURN = 8", by: "SHORTEST_TURN = 9" },
  { text: "LONGEST_TURN = 50", by: "LONGEST_TURN = 49" },
  { text: "LONGEST_TURN = 50", by: "LONGEST_TURN = 51" },
  { text: "LONGEST_STREAK = 1_000", by: "LONGEST_STREAK = 999" },
  { text: "LONGEST_STREAK = 1_000", by: "LONGEST_STREAK = 1_001" },
  { text: "SHORTEST_BACKOFF = 4", by: "SHORTEST_BACKOFF = 3" },
  { text: "SHORTEST_BACKOFF = 4", by: "SHORTEST_BACKOFF = 5" },
  { text: "#wanted = true;", by: "#wanted = false;\n  #quietUntil2 = 0;" },
  { text: "advertised ? SHORTEST_BACKOFF : LONGEST_TURN", by: "LONGEST_TURN" },
  { text: "advertised ? SHORTEST_BACKOFF : LONGEST_TURN", by: "SHORTEST_BACKOFF" },
  { text: "return this.#since !== NEVER", by: "return this.#since === NEVER" },
  { text: "return this.#since !== NEVER", by: "return true" },
  { text: "return this.#since !== NEVER", by: "return false" },
  { text: "Math.max(0, (this.#wanted", by: "Math.min(0, (this.#wanted" },
  {
    text: "this.#wanted ? this.#tryAt : this.#quietUntil",
    by: "this.#wanted ? this.#quietUntil : this.#tryAt",
  },
  { text: "this.#wanted ? this.#tryAt : this.#quietUntil", by: "this.#tryAt" },
  { text: "this.#wanted ? this.#tryAt : this.#quietUntil", by: "this.#quietUntil" },
];
