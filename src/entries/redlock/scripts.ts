/** The scripts that redlock lets its users replace, and this module does not. */

/** Scripts have no effect here: if some are given, the process emits a warning. */
export interface RedlockScripts {
  /** Without effect. */
  readonly acquireScript?: unknown;
  /** Without effect. */
  readonly extendScript?: unknown;
  /** Without effect. */
  readonly releaseScript?: unknown;
}

export function warnOfScripts({ acquireScript, extendScript, releaseScript }: RedlockScripts): void {
  if (!acquireScript && !extendScript && !releaseScript) return;
  process.emitWarning("redlock: scripts of your own have no effect in holdfast/redlock", {
    type: "HoldfastWarning",
    code: "HOLDFAST_REDLOCK_SCRIPTS",
  });
}
