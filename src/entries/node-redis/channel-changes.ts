/**
 * Subscribing and unsubscribing, one after the other for each channel. While the end of a subscription is on its way, node-redis
 * takes the channel for subscribed already if the beginning has just been confirmed: it adds the listener without a
 * command, and drops it with the answer to the other one.
 */
import { ignore, type PlainClient, rethrow } from "./clients.js";

export class ChannelChanges {
  readonly #ready: () => Promise<PlainClient>;
  /** By channel: settles when the last one that was asked for is over. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** `ready`: the client that is connected. */
  constructor(ready: () => Promise<PlainClient>) {
    this.#ready = ready;
  }

  /** Changes this channel when all that was asked for before is done. */
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
