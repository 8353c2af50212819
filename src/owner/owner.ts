/**
 * An owner is what a thread is to Redisson: it re-enters its own locks. It has no identity on the wire: each outermost
 * acquisition mints a wire id of its own.
 */
import { checkFunction, received } from "../base/arguments.js";
import { openFrame, runInside } from "./context.js";
import { OwnerRecord } from "./record.js";

/** An Owner and a Hold give their owner's record under this symbol, so that `options.owner` may be either. */
const OWNER = Symbol.for("holdfast.owner/2");

/**
 * An owner of locks: it re-enters the locks that it holds. Made by `client.newOwner()`, one for each `client.scope()`.
 * @example
 * const owner = client.newOwner();
 * await client.getLock("stock:42").lock({ owner });
 * await client.getLock("stock:42").unlock({ owner });
 */
export class Owner {
  readonly #record = new OwnerRecord();

  static {
    standFor(Owner.prototype, (owner) => owner.#record);
  }

  /**
   * Runs fn, and all that it awaits, as this owner, which fn gets; resolves with what fn returns.
   * @throws what fn throws; TypeError if it is no function
   */
  async scope<T>(fn: (owner: Owner) => T | Promise<T>): Promise<T> {
    checkFunction(fn, "fn");
    return runInside(openFrame(this.#record, true), () => fn(this));
  }
}

/** Lets the objects of a class stand for an owner in `options.owner`. */
export function standFor<T extends object>(prototype: T, ownerOf: (object: T) => OwnerRecord): void {
  Object.defineProperty(prototype, OWNER, {
    get(this: T) {
      return ownerOf(this);
    },
  });
}

/** The owner that `options.owner` names: an Owner, or a Hold (the owner of that hold, also after its unlock). */
export function checkOwner(value: unknown): OwnerRecord | undefined {
  if (value === undefined) return undefined;
  const owner =
    typeof value === "object" && value !== null ? (value as { [OWNER]?: OwnerRecord })[OWNER] : undefined;
  if (!owner) throw new TypeError(`owner must be an Owner or a Hold, not ${received(value)}`);
  return owner;
}
