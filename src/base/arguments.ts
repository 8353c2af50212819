/**
 * Checks what users pass in, before anything is sent. TypeError for a wrong type, RangeError for a wrong value.
 */

/** The options of a call, in an object that does not inherit from Object: a polluted Object.prototype sets no option. */
export type Options = Readonly<Record<string, unknown>>;

/** Makes such objects. Those of `Object.create(null)` are hash tables, which cost a call more than all its checks. */
class OwnOptions {
  [option: string]: unknown;
}
Object.setPrototypeOf(OwnOptions.prototype, null);

export const NO_OPTIONS: Options = Object.freeze(new OwnOptions());

const LONGEST_SHOWN = 40;

/**
 * How an error's text names the value that was passed. The contents of objects and long strings stay out of it: they
 * may be more than a text should show.
 */
export function received(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    const name = classOf(value);
    return name === PLAIN ? "an object" : `an instance of ${name}`;
  }
  if (typeof value === "function") return "a function";
  // A bigint without its mark would read as the number that was asked for.
  const shown = typeof value === "bigint" ? `${value}n` : String(value);
  const text = typeof value === "string" ? JSON.stringify(value) : shown;
  return text.length <= LONGEST_SHOWN ? text : `a ${typeof value}`;
}

const PLAIN = "Object";

/** The name of the class of an object; {@link PLAIN} for a literal, also for one without a prototype. */
function classOf(value: object): string {
  return (value.constructor ?? Object).name;
}

/**
 * The own properties of an options object; undefined counts as an empty one. @throws TypeError for a key not in `known`
 */
export function checkOptions(value: unknown, known: readonly string[], where: string): Options {
  if (value === undefined) return NO_OPTIONS;
  const keys = typeof value === "object" && value !== null ? Object.keys(value) : undefined;
  // An AbortSignal, an Owner or a Map has no own keys, so without this check it would count as empty options.
  if (!keys || (keys.length === 0 && classOf(value as object) !== PLAIN))
    throw new TypeError(`${where}: options must be an object, not ${received(value)}`);
  const options = new OwnOptions();
  for (const key of keys) {
    if (!known.includes(key)) {
      throw new TypeError(`${where}: unknown option "${key}"; it takes ${known.join(", ")}`);
    }
    options[key] = (value as Options)[key];
  }
  return options;
}

interface Types {
  readonly string: string;
  readonly number: number;
  readonly function: (...args: never) => unknown;
}

export function checkType<T extends keyof Types>(value: unknown, what: string, type: T): Types[T] {
  if (typeof value === type) return value as Types[T];
  throw new TypeError(`${what} must be a ${type}, not ${received(value)}`);
}

export function checkFunction(value: unknown, what: string): void {
  checkType(value, what, "function");
}

const NAME_BYTES = 512;

/** A lock's name: 1 to 512 bytes of well-formed UTF-8. */
export function checkName(value: unknown, what = "name"): string {
  const name = checkType(value, what, "string");
  if (name === "") throw new RangeError(`${what} must not be empty`);
  if (Buffer.byteLength(name) > NAME_BYTES)
    throw new RangeError(`${what} must not exceed ${NAME_BYTES} bytes of UTF-8`);
  // Two different lone surrogates become the same bytes, so two names would be one lock.
  if (!(name as string & { isWellFormed(): boolean }).isWellFormed())
    throw new RangeError(`${what} must not contain a lone surrogate`);
  return name;
}

/** Milliseconds to wait: 0 or more, Infinity allowed. */
export function checkWait(value: unknown, what = "wait"): number | undefined {
  if (value === undefined) return undefined;
  const wait = checkType(value, what, "number");
  if (!(wait >= 0)) throw new RangeError(`${what} must be 0 or more milliseconds, not ${wait}`);
  return wait;
}

/** A lease in whole milliseconds, at least 1. */
export function checkLease(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  return checkInteger(value, "lease", 1, "; leave it out for one that the watchdog renews");
}

/** An integer of at least `least`. */
export function checkInteger(value: unknown, what: string, least: number, hint = ""): number {
  const number = checkType(value, what, "number");
  if (!Number.isSafeInteger(number) || number < least) {
    throw new RangeError(`${what} must be an integer of at least ${least}, not ${number}${hint}`);
  }
  return number;
}

export function checkOneOf<const T>(value: unknown, what: string, ...allowed: readonly T[]): T {
  if (allowed.includes(value as T)) return value as T;
  const names = allowed.map((each) => JSON.stringify(each));
  const all = `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
  throw new TypeError(`${what} must be ${all}, not ${received(value)}`);
}

export function checkSignal(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  // Checked by its members, not by `instanceof`: a signal may come from another realm or from a polyfill.
  if (
    typeof value !== "object" ||
    value === null ||
    typeof (value as AbortSignal).aborted !== "boolean" ||
    typeof (value as AbortSignal).addEventListener !== "function" ||
    typeof (value as AbortSignal).removeEventListener !== "function"
  ) {
    throw new TypeError(`signal must be an AbortSignal, not ${received(value)}`);
  }
  return value as AbortSignal;
}
