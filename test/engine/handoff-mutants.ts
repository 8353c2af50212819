/**
 * Deliberate mistakes in the hand-over policy and in the queue that asks it. Each changes one constant, field, rule or
 * condition in the text.
 */

/** A text that stands in exactly one of the files, once, and its replacement. */
export type Mutant = readonly [text: string, by: string];

const WAIT = "this.#wait(now);";

export const MUTANTS: readonly Mutant[] = [
  // Constants.
  ["TURN = 4;", "TURN = 3;"],
  ["TURN = 4;", "TURN = 5;"],
  ["SHORTEST_TURN = 8", "SHORTEST_TURN = 7"],
  ["SHORTEST_TURN = 8", "SHORTEST_TURN = 9"],
  ["LONGEST_TURN = 50", "LONGEST_TURN = 49"],
  ["LONGEST_TURN = 50", "LONGEST_TURN = 51"],
  ["LONGEST_STAY = 1_000", "LONGEST_STAY = 999"],
  ["LONGEST_STAY = 1_000", "LONGEST_STAY = 1_001"],
  ["SHORTEST_BACKOFF = 4", "SHORTEST_BACKOFF = 3"],
  ["SHORTEST_BACKOFF = 4", "SHORTEST_BACKOFF = 5"],
  // The initial state of a policy.
  ["  #since = NEVER", "  #since = 0"],
  ["  #offeredAt = NEVER", "  #offeredAt = 0"],
  ["  #ahead = 0", "  #ahead = 1"],
  ["  #backoff = SHORTEST_BACKOFF", "  #backoff = LONGEST_TURN"],
  ["  #noTaker = false", "  #noTaker = true"],
  ["  #ownUntil = NEVER", "  #ownUntil = -NEVER"],
  ["  #wanted = true", "  #wanted = false"],
  ["  #tryAt = NEVER", "  #tryAt = -NEVER"],
  ["  #quietUntil = NEVER", "  #quietUntil = -NEVER"],
  ["advertised ? SHORTEST_BACKOFF : LONGEST_TURN", "LONGEST_TURN"],
  ["advertised ? SHORTEST_BACKOFF : LONGEST_TURN", "SHORTEST_BACKOFF"],
  ["advertised ? SHORTEST_BACKOFF : LONGEST_TURN", "advertised ? LONGEST_TURN : SHORTEST_BACKOFF"],
  ["return this.#since !== NEVER;", "return true;"],
  ["return this.#since !== NEVER;", "return false;"],
  // due
  ["Math.max(0, (this.#wanted", "Math.max(1, (this.#wanted"],
  ["Math.max(0, (this.#wanted ? this.#tryAt : this.#quietUntil) - now)", "this.#tryAt - now"],
  ["this.#wanted ? this.#tryAt : this.#quietUntil", "this.#tryAt"],
  ["this.#wanted ? this.#tryAt : this.#quietUntil", "this.#quietUntil"],
  ["this.#wanted ? this.#tryAt : this.#quietUntil", "this.#wanted ? this.#quietUntil : this.#tryAt"],
  // trying, tryIn, want, quiet
  ["this.#wanted = false;", ""],
  ["this.#tryAt = NEVER;", ""],
  ["this.#wanted = true;\n    this.#tryAt = now + ms;", "this.#tryAt = now + ms;"],
  ["this.#tryAt = now + ms;", ""],
  ["this.#tryAt = now + ms;", "this.#tryAt = ms;"],
  ["want(): void {\n    this.#wanted = true;", "want(): void {"],
  ["this.#quietUntil = now + ms;", ""],
  ["this.#quietUntil = now + ms;", "this.#quietUntil = ms;"],
  // changed
  ["this.#noTaker = false;", ""],
  ["if (this.#ahead > 0)", "if (this.#ahead >= 0)"],
  ["if (this.#ahead > 0)", "if (this.#ahead > 1)"],
  ["if (this.#ahead > 0)", "if (false)"],
  ["this.#ahead--;", ""],
  [`this.#ahead--;\n      ${WAIT}`, "this.#ahead--;\n      this.tryIn(this.#backoff, now);"],
  [`this.#ahead--;\n      ${WAIT}`, "this.#ahead--;\n      this.tryIn(0, now);"],
  [`this.#ahead--;\n      ${WAIT}`, "this.#ahead--;"],
  ["this.#wanted ? Math.min(backoff, this.#tryAt - now) : backoff", "backoff"],
  ["this.#wanted ? Math.min(backoff, this.#tryAt - now) : backoff", "0"],
  ["this.#wanted ? Math.min(backoff", "true ? Math.min(backoff"],
  ["Math.min(backoff, this.#tryAt - now)", "this.#tryAt - now"],
  ["Math.min(backoff, this.#tryAt - now)", "Math.max(backoff, this.#tryAt - now)"],
  // message
  ["this.#ownUntil = NEVER;\n    if", "if"],
  ["unannounced(): void {\n    this.#ownUntil = NEVER;", "unannounced(): void {"],
  ["if (own <= 0)", "if (own < 0)"],
  ["if (own <= 0)", "if (own <= 1)"],
  ["if (own <= 0)", "if (true)"],
  ["else if (!this.#wanted) this.tryIn(own, now);", ""],
  ["else if (!this.#wanted) this.tryIn(own, now);", "else this.tryIn(own, now);"],
  ["this.tryIn(own, now);", "this.tryIn(0, now);"],
  ["this.tryIn(own, now);", "this.changed(backoff, now);"],
  // arrived, granted
  ["this.#since = now;\n    this.#beginTurn(now);", "this.#beginTurn(now);"],
  ["this.#since = now;\n    this.#beginTurn(now);", "this.#since = now;"],
  ["this.#ahead = 0;", ""],
  // giveBack
  ["if (!this.active) this.#since = now;", ""],
  ["if (!this.active) this.#since = now;", "this.#since = now;"],
  ["if (!isLast && !isOver)", "if (!isOver)"],
  ["if (!isLast && !isOver)", "if (!isLast)"],
  ["> LONGEST_STAY", ">= LONGEST_STAY"],
  ["turn > SHORTEST_TURN && (", "("],
  ["turn > SHORTEST_TURN &&", "turn >= SHORTEST_TURN &&"],
  ["turn > SHORTEST_TURN &&", "turn > SHORTEST_TURN ||"],
  ["this.#left <= 0 ||", ""],
  ["this.#left <= 0 ||", "this.#left < 0 ||"],
  ["this.#left <= 0 ||", "this.#left <= 1 ||"],
  ["this.#left <= 0 ||", "this.#left <= 0 &&"],
  ["|| turn > LONGEST_TURN", ""],
  ["|| turn > LONGEST_TURN", "|| turn >= LONGEST_TURN"],
  ["this.#left--;", ""],
  ["this.#noTaker || this.#offeredAt === NEVER ? 0 :", "this.#noTaker ? 0 :"],
  ["this.#noTaker || this.#offeredAt === NEVER ? 0 :", "this.#offeredAt === NEVER ? 0 :"],
  ["2 * length, SHORTEST_BACKOFF", "length, SHORTEST_BACKOFF"],
  ["2 * length, SHORTEST_BACKOFF", "3 * length, SHORTEST_BACKOFF"],
  ["Math.max(2 * length, SHORTEST_BACKOFF)", "2 * length"],
  ["Math.max(2 * length, SHORTEST_BACKOFF)", "Math.min(2 * length, SHORTEST_BACKOFF)"],
  [
    "Math.min(Math.max(2 * length, SHORTEST_BACKOFF), this.#longestBackoff)",
    "Math.max(2 * length, SHORTEST_BACKOFF)",
  ],
  ["this.#beginTurn(now);\n    if", "if"],
  ["if (listening) ", ""],
  ["if (listening) ", "if (!listening) "],
  ["if (listening) ", "if (listening && !isLast) "],
  ["now + 2 * LONGEST_TURN", "now + LONGEST_TURN"],
  ["now + 2 * LONGEST_TURN", "now + 2 * LONGEST_TURN + 1"],
  ['isLast ? "release" : "offer"', '"offer"'],
  ['isLast ? "release" : "offer"', '"release"'],
  // backOff
  ["return this.#ahead > 0;", "return true;"],
  ["return this.#ahead > 0;", "return this.#ahead > 1;"],
  ["this.#ahead = others;", ""],
  ["this.#ahead = others;", "this.#ahead = 1;"],
  ["this.#noTaker = true;", ""],
  [`this.#noTaker = true;\n    ${WAIT}`, "this.#noTaker = true;"],
  [`this.#noTaker = true;\n    ${WAIT}`, "this.#noTaker = true;\n    this.tryIn(this.#backoff, now);"],
  ["Math.min(this.#ahead * this.#backoff, LONGEST_STAY)", "this.#ahead * this.#backoff"],
  // Turns.
  ["this.#offeredAt = now;", ""],
  ["this.#left = TURN;", ""],
];

/** Changes that affect no decision. */
export const EQUIVALENT: readonly (readonly [...Mutant, because: string])[] = [
  [
    "  #left = 0",
    "  #left = 1",
    "before the first turn `giveBack` offers for its length alone, and each turn sets it",
  ],
  [
    "  #tryAt = NEVER",
    "  #tryAt = 0",
    "a monotonic clock is never before 0, so a try is due at once either way",
  ],
];

/** Changes that break the promises between several processes: fairness between them. */
export const SELFISH: readonly Mutant[] = [
  // The policy asks other processes too late, or never.
  ["turn > SHORTEST_TURN && (this.#left <= 0 || turn > LONGEST_TURN)", "false"],
  ["LONGEST_TURN = 50", "LONGEST_TURN = 500"],
  // A process that has let others go first tries again before them.
  ["this.#ahead = others;", "this.#ahead = 0;"],
];

export const ENDLESS: readonly Mutant[] = [
  ["now - this.#since > LONGEST_STAY", "false"],
  ["LONGEST_STAY = 1_000", "LONGEST_STAY = 2_000"],
  ["if (!this.active) this.#since = now;", "this.#since = now;"],
];

export const SLEEPY: readonly Mutant[] = [
  // A process that has released the lock waits for its own message.
  ['else if (handoff !== "passLocal")', 'else if (handoff === "offer")'],
  // The policy forgets a change.
  ["this.tryIn(this.#wanted ? Math.min(backoff, this.#tryAt - now) : backoff, now);", ""],
  // The policy waits for a taker that never comes.
  [`this.#noTaker = true;\n    ${WAIT}`, "this.#noTaker = true;"],
  ["Math.max(2 * length, SHORTEST_BACKOFF), this", "Math.max(2 * length, SHORTEST_BACKOFF), 40 * this"],
];
