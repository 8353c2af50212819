/** A nested try: one more hold of a lock that the owner has. */
import { instant } from "../base/clock.js";
import { isLockError, LockLostError, RedisUnavailableError } from "../base/errors.js";
import { quietly } from "../base/work.js";
import type { Attempt } from "../engine/acquisition.js";
import { type Backend, DONE, OVER, SIDE_GONE } from "./backend.js";
import { type Answer, awhile, inOrder, once } from "./commands.js";
import { countOn, hasAnother, restOf } from "./holds.js";
import { loseAll, whyNotHeld } from "./loss.js";
import type { Grant, OwnerLock } from "./owner-lock.js";

/** Try again at once: the owner's holds have changed since the try was asked for. */
export const AGAIN: Attempt<Grant> = { granted: false, ttl: 0 };

/** A call that has to be nested. */
export interface Nested {
  readonly own: OwnerLock;
  readonly backend: Backend;
  readonly lockName: string;
  /** Milliseconds. */
  readonly lease: number;
  readonly since: ReturnType<typeof instant> | undefined;
  accept(number: number, sent: ReturnType<typeof instant>, token: bigint | undefined): Grant | undefined;
}

/** Resolves when the try and its undoing have settled. */
export async function reenter(call: Nested, answer: Answer<Attempt<Grant>>): Promise<void> {
  const { own, backend, lease, lockName } = call;
  const { env } = own.table;
  const { number, token, wireId } = own.firstHold as Grant;
  const callId = env.callId(wireId);
  const sendUndo = () => quietly(backend.undo(wireId, callId, () => restOf(own, backend)));
  const undo = () => {
    // The connection for grants may keep the try for longer than the tombstone of this undo lives.
    env.replicas?.end(callId, () => env.settle(inOrder(own, sendUndo)));
    return sendUndo();
  };
  const sent = call.since ?? instant(env.clock);
  try {
    const send = (left: number) =>
      backend.reenter(wireId, callId, countOn(own, backend.side) + 1, lease, left);
    const word = await once(own, backend, callId, send, answer.left);
    // Holds expired while the try waited. Once their release is done the count is as the next try expects.
    if (word === OVER && own.drops) return answer.resolve(AGAIN);
    if (word === OVER) {
      throw new RedisUnavailableError(lockName, new Error("its hold count was changed by others"));
    }
    if (word !== DONE) {
      // A nested write hold needs the write side, a nested read hold either side.
      const side = backend.side === "write" || word === SIDE_GONE ? backend.side : undefined;
      loseAll(own, whyNotHeld(own, word, side), side);
      return answer.resolve(AGAIN);
    }
    // The owner's holds were lost while the answer was on its way. That undid their side only, and this may be the other.
    if (own.firstHold?.number !== number) {
      answer.resolve(AGAIN);
      return void (await undo());
    }
    const value = call.accept(number, sent, token);
    if (value) {
      if (hasAnother(own, value)) value.nested = true;
      return answer.resolve({ granted: true, value, lease, nested: true });
    }
    answer.reject(new LockLostError(lockName, "expired", env.clock.wall()));
    await undo();
  } catch (error) {
    const undone = undo();
    if (isLockError(error, "REPLICAS")) await awhile(own, undone);
    answer.reject(error);
    await undone;
  }
}
