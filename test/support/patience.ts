/**
 * These times say how slow a machine may be before a test fails. On quiet cores nothing takes this long. The times only
 * limit waits, or keep something alive that a test does not want to end by itself.
 */

/** Milliseconds within which everything due has happened, also beside busy loops and seven other test files. */
export const PATIENCE = 20_000;

/** Milliseconds that a call may take beyond its own limit; less than the next longer limit. */
export const SLACK: number = PATIENCE / 2;

/** Client settings for tests whose subject is not how long an answer takes: calls get their answers sooner or later. */
export const UNHURRIED: { readonly commandTimeout: number } = { commandTimeout: PATIENCE };

/** Milliseconds of a watchdog that must renew a hold during a test: the process may stand still for two thirds of it. */
export const STEADY = 9_000;
