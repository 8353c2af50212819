/** Methods that run under a lock, by a decorator: the standard one, and TypeScript's experimental one. */
import type { LockClient, LockOptions } from "../index.js";
import { LOCKS } from "./shared/kinds.js";

/** Which kind of lock has the name; `read` and `write` are the sides of one read-write lock. */
export type LockedKind = "lock" | "fair" | "fenced" | "read" | "write";

/** `wait` and `lease` as `lock.run` takes them: by default it waits without limit, and the watchdog renews the hold. */
export interface LockedOptions extends Pick<LockOptions, "wait" | "lease"> {
  /** The kind of lock. Default `lock`. */
  kind?: LockedKind | undefined;
}

/** The client, or a function that gets the object whose method is called, also as its `this`. */
// biome-ignore lint/suspicious/noExplicitAny: the object is of whatever class the decorator stands in
export type ClientSource = LockClient | ((this: any, self: any) => LockClient);

/** The lock's name, or a function of the arguments of the call, with the object as its `this`. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type NameSource<A extends unknown[]> = string | ((this: any, ...args: A) => string);

/** A method that has to wait for its lock is asynchronous. */
type AsyncMethod = (...args: never[]) => Promise<unknown>;

/** Anything, if a name can be made of the arguments `A` whenever the method `T` is called; else what the compiler says. */
export type NamedBy<A extends unknown[], T> = T extends (...args: infer P) => unknown
  ? ((...args: A) => string) extends (...args: P) => string
    ? unknown
    : "the function of the name has to take the arguments of the method"
  : never;

/** Decorates a method, as a standard or as an experimental decorator, as the compiler asks for it. */
export interface LockedDecorator<A extends unknown[]> {
  <T extends AsyncMethod, This>(method: T, context: ClassMethodDecoratorContext<This> & NamedBy<A, T>): T;
  <T extends AsyncMethod>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<T> & NamedBy<A, T>,
  ): TypedPropertyDescriptor<T>;
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

/**
 * Each call of the method takes the lock, runs, and gives it back, as `lock.run` does and with its errors. Calls from
 * inside re-enter. A call whose hold was lost rejects LOCK_LOST though the method succeeded.
 * @throws TypeError for options that are no object, an unknown `kind`, and a member that is no method. For other wrong
 * options, and without a client, the call rejects
 * @example
 * class Shop {
 *   \@locked(client, (id: string) => `stock:${id}`, { wait: 2_000 })
 *   async sell(id: string): Promise<void> {
 *     await sell(id);
 *   }
 * }
 */
export function locked<A extends unknown[]>(
  client: ClientSource,
  name: NameSource<A>,
  options: LockedOptions = {},
): LockedDecorator<A> {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const what = Array.isArray(options) ? "an array" : String(options);
    throw new TypeError(`locked: options must be an object, not ${what}`);
  }
  const { kind = "lock", ...terms } = options;
  if (!Object.hasOwn(LOCKS, kind)) {
    throw new TypeError(`locked: kind must be one of ${Object.keys(LOCKS).join(", ")}`);
  }

  function wrap(method: unknown, key: string | symbol): Method {
    if (typeof method !== "function") throw new TypeError(`locked: ${String(key)} is no method`);
    async function run(this: unknown, ...args: unknown[]): Promise<unknown> {
      const source = typeof client === "function" ? client.call(this, this) : client;
      if (typeof source?.getLock !== "function") {
        throw new TypeError(
          `locked: ${String(key)} needs a LockClient, not ${source === null ? null : typeof source}`,
        );
      }
      const lockName = typeof name === "function" ? name.apply(this, args as A) : name;
      return LOCKS[kind](source, lockName).run(() => (method as Method).apply(this, args), terms);
    }
    const { name: called, length } = method;
    return Object.defineProperties(run, {
      name: { value: called, configurable: true },
      length: { value: length, configurable: true },
    });
  }

  function decorate(target: unknown, context: unknown, descriptor?: PropertyDescriptor): unknown {
    if (typeof context === "object" && context !== null) {
      const { kind: what, name: key } = context as ClassMethodDecoratorContext;
      return wrap(what === "method" && target, key);
    }
    return { ...descriptor, value: wrap(descriptor?.value, context as string | symbol) };
  }
  return decorate as LockedDecorator<A>;
}
