/**
 * How slow a machine may be before a test fails for that. Nobody waits for so long on quiet cores: these times only bound what
 * is waited for, or keep something from ending by itself that a test does not want to end.
 */

/** Milliseconds within which all that is due has happened, also beside busy loops and seven other test files. */
export const PATIENCE = 20_000;

/** Milliseconds that a call may take beyond its own bound: still less than the next longer one. */
export const SLACK: number = PATIENCE / 2;

/** Settings of a client whose calls get their answers sooner or later: how long they may take is not the subject. */
export const UNHURRIED: { readonly commandTimeout: number } = { commandTimeout: PATIENCE };

/** Milliseconds of a watchdog that has to renew a hold before a test is over: a process may stand still for two thirds of it. */
export const STEADY = 9_000;
