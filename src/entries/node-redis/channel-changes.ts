/**
 * Subscribes and unsubscribes, one after the other for each channel. In parallel, node-redis can lose a listener:
 *
 *   unsubscribe   is on its way
 *   subscribe     finds the channel subscribed still, and adds its listener without a command
 *   answer        to the unsubscribe arrives, and node-redis drops the new listener with it
 */
import { ignore, type PlainClient, rethrow } from "./clients.js";

export class ChannelChanges {
  readonly #ready: () => Promise<PlainClient>;
  /** By channel: settles when the last change that was asked for is over. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** `ready` resolves with the client that is connected. */
  constructor(ready: () => Promise<PlainClient>) {
    this.#ready = ready;
  }

  /** Changes this channel when all earlier changes are over. */
  change(channel: string, what: (client: PlainClient) => Promise<unknown>): Promise<unknown> {
    const send = async () => what(await this.#ready()).catch(rethrow);
    const before = this.#last.get(channel);
    const change = before ? before.then(send) : send();
    const over = change.catch(ignore).then(() => {
      if (this.#last.get(channel) === over) this.#last.delete(channel);
    });
    this.#last.set(channel, over);
    return change;
  }
}
