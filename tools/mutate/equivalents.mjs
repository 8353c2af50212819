// Changes of the TypeScript that no test can notice, and why.

const ORDER = "those that are due together may come in any order";
const SHORTCUT = "spares work, and comes to the same";
const UNDEFINED = "undefined either way";
const BEGUN = "the engine sets it when the call begins";

/** The changes of one line that `edits` make, each by a text and what takes its place. */
function same(why, file, line, ...edits) {
  return edits.map(([from, to]) => [`src/${file}.ts: ${line} -> ${line.replace(from, () => to)}`, why]);
}

/** As `file: line -> line`. */
const EQUIVALENT = new Map([
  ...same(
    ORDER,
    "watchdog/timer-heap",
    "const below = right && left && right.dueAt < left.dueAt ? right : left;",
    ["<", "<="],
  ),
  ...same(ORDER, "watchdog/timer-heap", "if (!below || below.dueAt >= entry.dueAt) return;", [">=", ">"]),
  ...same("a batch is never empty", "watchdog/watchdog", "first?.renewer.renew(batch).then(", ["?", ""]),
  ...same(BEGUN, "engine/acquisition", "single = false;", ["false", "true"]),
  ...same(BEGUN, "engine/acquisition", "hasWaited = false;", ["false", "true"]),
  ...same(UNDEFINED, "engine/acquisition", "get ticket(): string | undefined { return undefined; }", [
    /{.*/,
    "{}",
  ]),
  ...same(
    UNDEFINED,
    "engine/acquisition",
    "whenAnswered(_callback: () => void): (() => void) | undefined { return undefined; }",
    [/{.*/, "{}"],
  ),
  ...same(
    UNDEFINED,
    "engine/acquisition",
    "succeed(_lockKey: string, _own: number | undefined): Successor | undefined { return undefined; }",
    [/{.*/, "{}"],
  ),
  ...same(
    "without it there is no interval",
    "engine/round-backoff",
    "this.#servedAt !== undefined && this.#interval ? (now - this.#servedAt) / this.#interval : 1;",
    ["this.#servedAt !== undefined", "true"],
  ),
  ...same(SHORTCUT, "engine/engine", "if (cancelTimer || stopListening) {", [
    "cancelTimer || stopListening",
    "true",
  ]),
  ...same(SHORTCUT, "engine/promised-permits", "if (this.#last === waiter) this.#last = undefined;", [
    "this.#last === waiter",
    "true",
  ]),
  ...same(
    SHORTCUT,
    "engine/wait-queue",
    "for (const waiter of mustRetry.length > 0 ? this.#waiters.all() : []) {",
    ["mustRetry.length > 0", "true"],
    [">", ">="],
  ),
  ...same("0 has been dealt with before", "engine/wait-loop", "if (ttl < 0) return pollCap;", ["<", "<="]),
]);

/** Why a change cannot be noticed. */
export function reasonFor(title) {
  return EQUIVALENT.get(title);
}
