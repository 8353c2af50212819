/**
 * Decides whether a history is linearizable. In such a history each operation can have one instant between its call and
 * its answer, and the specification allows the order of these instants.
 *
 * The search is that of J. M. Wing and C. Gong, "Testing and verifying concurrent objects" (J. Parallel Distrib.
 * Comput. 17, 1993). As the next operation it tries each one that was called before the first answer that is not yet
 * explained. The memory is that of G. Lowe, "Testing for linearizability" (Concurrency and Computation 29(4), 2017): a
 * set of operations that leads to the same state again is tried once only. Names are independent of each other, and are
 * searched one by one.
 */

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
  /** It may have taken effect once, at any time between `invoked` and `settled`, or never. */
  | { readonly kind: "unknown" };

export type History<Call = unknown, Answer = unknown> = readonly Operation<Call, Answer>[];

function groupByName<Call, Answer>(history: History<Call, Answer>): Map<string, Operation<Call, Answer>[]> {
  const names = new Map<string, Operation<Call, Answer>[]>();
  for (const operation of history) {
    const known = names.get(operation.name);
    if (known) known.push(operation);
    else names.set(operation.name, [operation]);
  }
  return names;
}

export interface Spec<State, Call, Answer> {
  readonly initial: State;
  /**
   * The states in which the operation may leave the lock; none if it cannot have happened in this state. For an unknown
   * outcome: the states after each answer that changes the state.
   */
  next(state: State, operation: Operation<Call, Answer>): readonly State[];
  /** Equal keys mean equal states. */
  keyOf(state: State): string;
}

export type Verdict<Call = unknown, Answer = unknown> =
  | { readonly linearizable: true; readonly states: number }
  | Violation<Call, Answer>
  /** The search was given up after `states` states. */
  | { readonly linearizable: undefined; readonly name: string; readonly states: number };

export interface Violation<Call = unknown, Answer = unknown> {
  readonly linearizable: false;
  readonly name: string;
  /** The longest sequence of operations that could be explained. */
  readonly longest: History<Call, Answer>;
  /** The first answer that cannot come after that sequence. */
  readonly refuted: Operation<Call, Answer> | undefined;
  readonly states: number;
}

/** @param most states that are searched for each name before the search is given up: some 200 bytes each */
export function checkLinearizable<State, Call, Answer>(
  history: History<Call, Answer>,
  spec: Spec<State, Call, Answer>,
  most = 200_000,
): Verdict<Call, Answer> {
  let states = 0;
  let undecided: Verdict<Call, Answer> | undefined;
  for (const [name, operations] of groupByName(history)) {
    const verdict = new Search(name, operations, spec).run(most);
    if (verdict.linearizable === false) return verdict;
    if (verdict.linearizable === undefined) undecided ??= verdict;
    states += verdict.states;
  }
  return undecided ?? { linearizable: true, states };
}

/** A call or an answer, in the list of those that are not yet explained. */
interface Entry<Call, Answer> {
  readonly operation: Operation<Call, Answer>;
  readonly index: number;
  readonly isCall: boolean;
  /** The answer to this call, or the call of this answer. */
  other?: Entry<Call, Answer>;
  before?: Entry<Call, Answer> | undefined;
  after?: Entry<Call, Answer> | undefined;
}

/** The options after a sequence of operations, which are tried one after the other. */
interface Step<State, Call, Answer> {
  /** All states in which the lock may be. */
  readonly states: readonly State[];
  readonly options: readonly Entry<Call, Answer>[];
  /** The first answer that is not yet explained. */
  readonly first: Entry<Call, Answer> | undefined;
  tried: number;
  taken?: Entry<Call, Answer> | undefined;
}

class Search<State, Call, Answer> {
  readonly #name: string;
  readonly #spec: Spec<State, Call, Answer>;
  /** Stands before the list: the head's `after` is the first entry. */
  readonly #head = {} as Entry<Call, Answer>;
  readonly #seen = new Set<string>();
  /** One bit for each explained operation. */
  readonly #explained: Uint16Array;
  /** The number of operations that surely took effect and are not yet explained. */
  #due = 0;
  readonly #steps: Step<State, Call, Answer>[] = [];
  #depth = -1;
  #longest: History<Call, Answer> = [];
  #refuted: Operation<Call, Answer> | undefined;

  constructor(name: string, operations: History<Call, Answer>, spec: Spec<State, Call, Answer>) {
    this.#name = name;
    this.#spec = spec;
    this.#explained = new Uint16Array(Math.ceil(operations.length / 16));
    const entries = operations.flatMap((operation, index) => {
      if (!isOptional(operation)) this.#due++;
      const call: Entry<Call, Answer> = { operation, index, isCall: true };
      call.other = { operation, index, isCall: false, other: call };
      return [call, call.other];
    });
    // Entries of the same instant may have happened in either order.
    entries.sort((a, b) => instantOf(a) - instantOf(b) || Number(b.isCall) - Number(a.isCall));
    let last = this.#head;
    for (const entry of entries) {
      entry.before = last;
      last.after = entry;
      last = entry;
    }
  }

  run(most: number): Verdict<Call, Answer> {
    const name = this.#name;
    this.#descend([this.#spec.initial]);
    while (this.#due > 0) {
      const step = this.#steps.at(-1);
      const states = this.#seen.size;
      if (!step) {
        return { linearizable: false, name, longest: this.#longest, refuted: this.#refuted, states };
      }
      if (states > most) return { linearizable: undefined, name, states };
      this.#takeBack(step);
      const option = step.options[step.tried++];
      if (option) this.#try(step, option);
      else this.#ascend(step);
    }
    return { linearizable: true, states: this.#seen.size };
  }

  #try(step: Step<State, Call, Answer>, option: Entry<Call, Answer>): void {
    // An option that is an answer stands for an operation that must happen now or never: here it never happens.
    const states = option.isCall ? this.#after(step.states, option.operation) : step.states;
    if (states.length === 0) return;
    this.#toggle(option);
    const key = String.fromCharCode(...this.#explained) + states.map((state) => this.#spec.keyOf(state));
    if (this.#seen.has(key)) {
      this.#toggle(option);
      return;
    }
    this.#seen.add(key);
    step.taken = option;
    const { call, answer } = pairOf(option);
    unlink(call);
    unlink(answer);
    if (!isOptional(option.operation)) this.#due--;
    this.#descend(states);
  }

  #takeBack(step: Step<State, Call, Answer>): void {
    const option = step.taken;
    if (!option) return;
    step.taken = undefined;
    if (!isOptional(option.operation)) this.#due++;
    // In the reverse order, so that each entry finds the neighbours that it had.
    const { call, answer } = pairOf(option);
    relink(answer);
    relink(call);
    this.#toggle(option);
  }

  #descend(states: readonly State[]): void {
    const sure: Entry<Call, Answer>[] = [];
    const optional: Entry<Call, Answer>[] = [];
    let entry = this.#head.after;
    for (; entry?.isCall; entry = entry.after) (isOptional(entry.operation) ? optional : sure).push(entry);
    // The call whose answer comes first is most likely the next one.
    sure.sort((a, b) => a.operation.settled - b.operation.settled);
    const options = [...sure, ...optional];
    if (entry && isOptional(entry.operation)) options.push(entry);
    this.#steps.push({ states, options, first: entry, tried: 0 });
  }

  #ascend({ first }: Step<State, Call, Answer>): void {
    this.#steps.pop();
    if (this.#steps.length <= this.#depth) return;
    this.#depth = this.#steps.length;
    this.#longest = this.#steps.flatMap(({ taken }) => (taken?.isCall ? [taken.operation] : []));
    this.#refuted = first?.operation;
  }

  /** The states in which the lock may be after the operation, from all states in which it may be before; each once. */
  #after(states: readonly State[], operation: Operation<Call, Answer>): State[] {
    const found = new Map<string, State>();
    for (const state of states) {
      for (const next of this.#spec.next(state, operation)) found.set(this.#spec.keyOf(next), next);
    }
    return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, state]) => state);
  }

  #toggle({ index }: Entry<Call, Answer>): void {
    const word = index >> 4;
    this.#explained[word] = (this.#explained[word] as number) ^ (1 << (index & 15));
  }
}

function instantOf({ isCall, operation }: Entry<unknown, unknown>): number {
  return isCall ? operation.invoked : operation.settled;
}

function pairOf<Call, Answer>(entry: Entry<Call, Answer>): Record<"call" | "answer", Entry<Call, Answer>> {
  const other = entry.other as Entry<Call, Answer>;
  return entry.isCall ? { call: entry, answer: other } : { call: other, answer: entry };
}

function isOptional({ outcome }: Operation): boolean {
  return outcome.kind === "unknown";
}

function unlink<Call, Answer>({ before, after }: Entry<Call, Answer>): void {
  if (before) before.after = after;
  if (after) after.before = before;
}

function relink<Call, Answer>(entry: Entry<Call, Answer>): void {
  const { before, after } = entry;
  if (before) before.after = entry;
  if (after) after.before = entry;
}
