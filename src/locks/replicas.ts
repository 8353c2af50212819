/**
 * Grants that replicas must acknowledge. WAIT counts the writes of its own connection and blocks it, so grants travel
 * on a connection of their own, each with its WAIT right behind it.
 */
import { ReplicationError } from "../base/errors.js";
import type { Connection } from "../redis/connection.js";
import type { Call, Link, Reader } from "../redis/link.js";
import { type Acknowledged, Sender } from "../redis/sender.js";
import type { ArgumentValues, KeyValues } from "../scripts/script.js";

export interface ReplicasOptions {
  readonly link: Link;
  readonly connection: Connection;
  readonly required: number;
  /** Milliseconds, on top of the time-out of the command. */
  readonly timeout: number;
  readonly legacyServer: boolean;
}

export class Replicas {
  readonly #options: ReplicasOptions;
  readonly #sender: Sender;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.#sender = new Sender(options.connection, options.legacyServer);
  }

  /**
   * Runs a granting script; `granted` says of what was read from its reply whether it was granted.
   * @throws REPLICAS if it was granted and too few acknowledged: the caller undoes it
   */
  async call<K extends KeyValues, A extends ArgumentValues, T>(
    call: Call<K, A>,
    read: Reader<T>,
    granted: (value: T) => boolean,
  ): Promise<T> {
    const { link, required, timeout } = this.#options;
    const { lockName, script, keys, args } = call;
    const send = () => this.#sender.sendAndWait(script, keys, args, required, timeout);
    const within = (call.within ?? link.commandTimeout) + timeout;
    const answer = await link.pursue({ lockName, send, read: (pair) => pair as Acknowledged }, within);
    const value = read(answer.reply);
    if (granted(value) && answer.acknowledged < required) {
      throw new ReplicationError(lockName, answer.acknowledged, required);
    }
    return value;
  }

  close(): void {
    this.#options.connection.disconnect();
  }
}
