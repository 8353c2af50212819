/** What calls come to. */

/** What a promise has come to so far. */
export interface Watched<T = unknown> {
  readonly promise: Promise<T>;
  state: "pending" | "resolved" | "rejected";
  value: T | undefined;
  error: unknown;
  /** Milliseconds it took. */
  took: number;
  /** "pending", what it resolved with, or the code of its error, or the error itself. */
  readonly outcome: unknown;
}

/** How far a promise is; a rejection counts as handled. */
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

/** What a call throws or rejects with; fails if it does neither. */
export async function failure(call: Promise<unknown> | (() => unknown)): Promise<Error> {
  let value: unknown;
  try {
    value = await (typeof call === "function" ? call() : call);
  } catch (error) {
    return error as Error;
  }
  throw new Error(`expected a failure, got ${String(value)}`);
}
