/** Outcomes of calls. */

/** The present state of a promise. */
export interface Watched<T = unknown> {
  readonly promise: Promise<T>;
  state: "pending" | "resolved" | "rejected";
  value: T | undefined;
  error: unknown;
  /** Milliseconds until the promise settled. */
  took: number;
  /** "pending", the value it resolved with, the code of its error, or the error itself. */
  readonly outcome: unknown;
}

/** Watches a promise; its rejection counts as handled. */
export function watch<T>(promise: Promise<T>): Watched<T> {
  const begun = performance.now();
  const watched: Watched<T> = {
    promise,
    state: "pending",
    value: undefined,
    error: undefined,
    took: 0,
    get outcome() {
      if (this.state === "pending") return "pending";
      if (this.state === "resolved") return this.value;
      return (this.error as { code?: unknown } | undefined)?.code ?? this.error;
    },
  };
  const over = (state: Watched["state"], told: { value?: T; error?: unknown }) =>
    void Object.assign(watched, { state, took: performance.now() - begun, ...told });
  promise.then(
    (value) => over("resolved", { value }),
    (error: unknown) => over("rejected", { error }),
  );
  return watched;
}

/** The error that a call throws or rejects with; fails if the call succeeds. */
export async function failure(call: Promise<unknown> | (() => unknown)): Promise<Error> {
  let value: unknown;
  try {
    value = await (typeof call === "function" ? call() : call);
  } catch (error) {
    return error as Error;
  }
  throw new Error(`expected a failure, got ${String(value)}`);
}
