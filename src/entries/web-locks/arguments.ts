/** Reads the arguments of `request()` as browsers do: unknown options are ignored, and what is truthy is true. */
import type { LockMode } from "./types.js";

export type Callback = (lock: unknown) => unknown;

export interface CheckedRequest {
  readonly name: string;
  readonly mode: LockMode;
  readonly ifAvailable: boolean;
  readonly steal: boolean;
  readonly signal: AbortSignal | undefined;
  readonly callback: Callback;
}

/** Checks types, in the order of the standard; the client checks the text of the name. @throws TypeError */
export function checkTypes(given: readonly unknown[]): CheckedRequest {
  if (given.length < 2) throw new TypeError("request(name, options?, callback) takes a name and a callback");
  const [name, second, third] = given;
  const [options, callback] = given.length === 2 ? [undefined, second] : [second, third];
  if (typeof name !== "string") throw new TypeError("name must be a string");
  const checked = { name, ...checkOptions(options) };
  if (typeof callback !== "function") throw new TypeError("callback must be a function");
  return { ...checked, callback: callback as Callback };
}

/** Refuses what no request may ask for. @throws NotSupportedError */
export function checkSupported({ name, mode, ifAvailable, steal, signal }: CheckedRequest): void {
  if (name.startsWith("-")) throw unsupported('a name that begins with "-" is reserved');
  if (steal && ifAvailable) throw unsupported("steal and ifAvailable exclude each other");
  if (steal && mode !== "exclusive") throw unsupported("steal takes mode exclusive");
  if (signal && (steal || ifAvailable)) {
    throw unsupported(`signal and ${steal ? "steal" : "ifAvailable"} exclude each other`);
  }
}

function checkOptions(options: unknown): Omit<CheckedRequest, "name" | "callback"> {
  if (options !== undefined && typeof options !== "object" && typeof options !== "function") {
    throw new TypeError("options must be an object");
  }
  const { ifAvailable, mode = "exclusive", signal, steal } = (options ?? {}) as Record<string, unknown>;
  if (mode !== "exclusive" && mode !== "shared") throw new TypeError('mode must be "exclusive" or "shared"');
  if (signal !== undefined && !isSignal(signal)) throw new TypeError("signal must be an AbortSignal");
  return { mode, ifAvailable: Boolean(ifAvailable), steal: Boolean(steal), signal };
}

/** Checks by shape, because a signal may come from another realm or from a polyfill. */
function isSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}

function unsupported(message: string): DOMException {
  return new DOMException(message, "NotSupportedError");
}
