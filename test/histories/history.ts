/** The calls, their outcomes and their times: the input of the checks of linearizability. */

/** A call of one owner, or an event of its holds: an expiry is an operation of the environment. */
export interface Operation<Call = unknown, Answer = unknown> {
  /** The name of the lock. */
  readonly name: string;
  /** The caller: one owner of one client. */
  readonly caller: string;
  readonly call: Call;
  /** A monotonic time, in any unit that the whole history shares. */
  readonly invoked: number;
  /** When the call ended; Infinity if its outcome is unknown or still open. */
  readonly settled: number;
  readonly outcome: Outcome<Answer>;
}

export type Outcome<Answer = unknown> =
  | { readonly kind: "ok"; readonly answer: Answer }
  /** The operation certainly had no effect. */
  | { readonly kind: "failed" }
  /** It may have taken effect once, at any time between `invoked` and `settled`, or never. */
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
