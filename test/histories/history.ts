/** What was called, what came of it, and when: what the checks of linearizability are given. */

/** One call of one owner, or something that may happen to its holds: an expiry is an operation of the environment. */
export interface Operation<Call = unknown, Answer = unknown> {
  /** Of the lock. */
  readonly name: string;
  /** Who called: one owner of one client. */
  readonly caller: string;
  readonly call: Call;
  /** Monotonic; in any unit, the same for a whole history. */
  readonly invoked: number;
  /** Infinity when the outcome is unknown or still open. */
  readonly settled: number;
  readonly outcome: Outcome<Answer>;
}

export type Outcome<Answer = unknown> =
  | { readonly kind: "ok"; readonly answer: Answer }
  /** Certain to have had no effect. */
  | { readonly kind: "failed" }
  /** May have taken effect once, at any time between `invoked` and `settled`, or never. */
  | { readonly kind: "unknown" };

export type History<Call = unknown, Answer = unknown> = readonly Operation<Call, Answer>[];

export function groupByName<Call, Answer>(
  history: History<Call, Answer>,
): Map<string, Operation<Call, Answer>[]> {
  const names = new Map<string, Operation<Call, Answer>[]>();
  for (const operation of history) {
    const known = names.get(operation.name);
    if (known) known.push(operation);
    else names.set(operation.name, [operation]);
  }
  return names;
}
