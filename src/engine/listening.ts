/** Listens to the channels that wake waiters. Where the server forbids a channel, its waiters end with UNSUPPORTED. */
import { UnsupportedServerError } from "../base/errors.js";
import type { Acquisition } from "./acquisition.js";

/** Ends a call with this reason. */
export type EndCall = (call: Acquisition<unknown>, reason: unknown) => void;

/** Listens to the channel of `call` on behalf of `waiters`. Returns the function that stops listening. */
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

/** Lets a call listen to its own channel, unless it does already. */
export function listenAlone(call: Acquisition<unknown>, end: EndCall): void {
  const hint = () => call.hint();
  call.unsubscribe ??= listen(call, hint, () => [call], end);
}
