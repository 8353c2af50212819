/**
 * An owner is what a thread is to Redisson: the party that re-enters its own locks. It has no identity on the wire;
 * each outermost acquisition mints a wire id of its own.
 */
import { checkFunction, received } from "../base/arguments.js";
import { openFrame, type Party, runInside, Stakes } from "./context.js";

/** Under this symbol an Owner has itself, and a Hold its owner: what `options.owner` may name. */
const OWNER = Symbol.for("holdfast.owner");

/**
 * One party that holds locks. Made by `client.newOwner()`, one for each `client.scope()`, one for each bare call whose
 * owner is asked for.
 */
export class Owner extends Stakes implements Party {
  static {
    standFor(Owner.prototype, (owner) => owner);
  }

  /** Internal to the library. */
  get stakes(): Stakes {
    return this;
  }

  /** Runs fn, and all that it awaits, as this owner; resolves with what fn returns. */
  async scope<T>(fn: () => T | Promise<T>): Promise<T> {
    checkFunction(fn, "fn");
    return runInside(openFrame(this), fn);
  }
}

/** Lets the objects of a class stand for an owner in `options.owner`. */
export function standFor<T extends object>(prototype: T, ownerOf: (object: T) => Party): void {
  Object.defineProperty(prototype, OWNER, {
    get(this: T) {
      return ownerOf(this);
    },
  });
}

/** The owner that `options.owner` names: an Owner, or a Hold (its owner, also after its unlock). */
export function checkOwner(value: unknown): Party | undefined {
  if (value === undefined) return undefined;
  const owner =
    typeof value === "object" && value !== null ? (value as { [OWNER]?: Party })[OWNER] : undefined;
  if (!owner) throw new TypeError(`owner must be an Owner or a Hold, not ${received(value)}`);
  return owner;
}
