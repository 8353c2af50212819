/**
 * Checks what users pass in, before anything is sent. TypeError for a wrong type, RangeError for a wrong value.
 */

/** What a caller wrote: it inherits nothing, so that a polluted Object.prototype sets no option. */
export type Options = Readonly<Record<string, unknown>>;

const NO_OPTIONS: Options = Object.freeze(Object.create(null));

/** The own properties of an options object, which has no other string keys than `known`; undefined is an empty one. */
export function checkOptions(value: unknown, known: readonly string[], where: string): Options {
  if (value === undefined) return NO_OPTIONS;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(`${where}: options must be an object`);
  }
  const options: Record<string, unknown> = Object.create(null);
  for (const [key, setting] of Object.entries(value)) {
    if (!known.includes(key)) throw new TypeError(`${where}: unknown option "${key}"`);
    options[key] = setting;
  }
  return options;
}

const NAME_BYTES = 512;
/** Bytes of UTF-8 that one unit of a string can take. */
const LONGEST_UNIT = 3;

/** A lock's name: 1 to 512 bytes of well-formed UTF-8. */
export function checkName(value: unknown, what = "name"): string {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string`);
  if (value === "") throw new RangeError(`${what} must not be empty`);
  if (value.length * LONGEST_UNIT > NAME_BYTES && Buffer.byteLength(value) > NAME_BYTES)
    throw new RangeError(`${what} must not exceed ${NAME_BYTES} bytes of UTF-8`);
  // Two different lone surrogates become the same bytes, so two names would be one lock.
  if (!(value as string & { isWellFormed(): boolean }).isWellFormed())
    throw new RangeError(`${what} must not contain a lone surrogate`);
  return value;
}

/** Milliseconds to wait: 0 or more, Infinity allowed. */
export function checkWait(value: unknown, what = "wait"): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "number") throw new TypeError(`${what} must be a number of milliseconds`);
  if (!(value >= 0)) throw new RangeError(`${what} must be 0 or more milliseconds`);
  return value;
}

/** A lease in whole milliseconds, at least 1. */
export function checkLease(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  return checkInteger(value, "lease", 1, "; leave it out for one that the watchdog renews");
}

/** An integer of at least `least`. */
export function checkInteger(value: unknown, what: string, least: number, hint = ""): number {
  if (typeof value !== "number") throw new TypeError(`${what} must be a number${hint}`);
  if (!Number.isSafeInteger(value) || value < least) {
    throw new RangeError(`${what} must be an integer of at least ${least}${hint}`);
  }
  return value;
}

export function checkSignal(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  // Structural, for signals of another realm or a polyfill.
  if (
    typeof value !== "object" ||
    value === null ||
    typeof (value as AbortSignal).aborted !== "boolean" ||
    typeof (value as AbortSignal).addEventListener !== "function"
  ) {
    throw new TypeError("signal must be an AbortSignal");
  }
  return value as AbortSignal;
}

export function checkFunction<T>(value: T, what: string): T {
  if (typeof value !== "function") throw new TypeError(`${what} must be a function`);
  return value;
}
