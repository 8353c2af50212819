/**
 * Grants that replicas must acknowledge. WAIT counts the writes of its own connection and blocks it, so grants travel
 * on a connection of their own, each with its WAIT right behind it.
 */
import { ReplicationError } from "../base/errors.js";
import type { Connection } from "../redis/connection.js";
import type { Call, Link } from "../redis/link.js";
import { Sender } from "../redis/sender.js";
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
   * Runs a granting script; `granted` reads its reply.
   * @throws REPLICAS if it was granted and too few acknowledged: the caller undoes it
   */
  async call<K extends KeyValues, A extends ArgumentValues>(
    call: Call<K, A>,
    granted: (reply: unknown) => boolean,
  ): Promise<unknown> {
    const { link, required, timeout } = this.#options;
    const within = (call.within ?? link.commandTimeout) + timeout;
    const { reply, acknowledged } = await link.retried(call.lockName, within, () =>
      this.#sender.sendAndWait(call.script, call.keys, call.args, required, timeout),
    );
    if (granted(reply) && acknowledged < required)
      throw new ReplicationError(call.lockName, acknowledged, required);
    return reply;
  }

  close(): void {
    this.#options.connection.disconnect();
  }
}
