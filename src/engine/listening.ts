/** Listening for what wakes waiters. Where the server forbids the channel they cannot be woken, and their calls end. */
import { UnsupportedServerError } from "../base/errors.js";
import type { Acquisition } from "./acquisition.js";

/** Ends a call with this reason. */
export type EndCall = (call: Acquisition<unknown>, reason: unknown) => void;

/** Listens as `call` does, on behalf of `waiters`. Returns the way to stop. */
export function listen(
  call: Acquisition<unknown>,
  hint: () => void,
  waiters: () => readonly Acquisition<unknown>[],
  end: EndCall,
): () => void {
  const refused = (error: unknown) => {
    const reason = error instanceof Error ? error.message : "unknown error";
    const message = `the server forbids the channel: ${reason}`;
    for (const waiter of waiters()) end(waiter, new UnsupportedServerError(call.lockName, message));
  };
  return call.listen({ hint, refused });
}

/** Lets a call listen for itself. */
export function listenAlone(call: Acquisition<unknown>, end: EndCall): void {
  const hint = () => call.hint();
  call.unsubscribe ??= listen(call, hint, () => [call], end);
}
