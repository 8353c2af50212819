/** Helpers for work that outlives the call that began it. */

export function noop(): void {
  // Nothing to do.
}

/** Resolves when the work has settled; its outcome is handled elsewhere. */
export function quietly(work: Promise<unknown>): Promise<void> {
  return work.then(noop, noop);
}
