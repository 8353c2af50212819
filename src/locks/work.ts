/** Helpers for work that outlives the call that began it. */

export function noop(): void {
  // Nothing to do.
}

/** The settling of work whose outcome others look after. */
export function quietly(work: Promise<unknown>): Promise<void> {
  return work.then(noop, noop);
}
