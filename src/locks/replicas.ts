/**
 * Grants that replicas must acknowledge. WAIT counts the writes of its own connection and blocks it, so grants travel
 * on a connection of their own, with a WAIT behind them. Those that come while a WAIT blocks it share the next one:
 * with a WAIT for each, the time-outs of a stalled replica would add up.
 */
import { ReplicationError } from "../base/errors.js";
import { nextTick } from "../base/platform.js";
import type { Call, Reader } from "../redis/call.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { type Connection, lookForMasters, masterAddress } from "../redis/connection.js";
import { onEvents } from "../redis/connection-events.js";
import { isMoved } from "../redis/failures.js";
import { type Acknowledged, Sender } from "../redis/sender.js";
import type { ArgumentValues, EvalArguments, KeyValues } from "../scripts/script.js";

export interface ReplicasOptions {
  readonly runner: CommandRunner;
  readonly connection: Connection;
  readonly required: number;
  /** Milliseconds, on top of the time-out of the command. */
  readonly timeout: number;
  readonly legacyServer: boolean;
}

/** A grant that waits for its turn to be sent. */
interface Grant {
  readonly script: EvalArguments;
  readonly resolve: (answer: Acknowledged) => void;
  readonly reject: (error: unknown) => void;
}

export class Replicas {
  readonly #options: ReplicasOptions;
  readonly #sender: Sender;
  /** Of each server that a batch of grants is under way to: those that go next. */
  readonly #next = new Map<string, Grant[]>();
  readonly #stopListening: readonly (() => void)[];

  constructor(options: ReplicasOptions) {
    const { connection, legacyServer, runner } = options;
    this.#options = options;
    this.#sender = new Sender(connection, legacyServer);
    const lost = () => {
      runner.connectionEpoch++;
    };
    for (const event of ["close", "node error", "-node"]) connection.on(event, lost);
    // Its connection ends with the one that it was made from, and is connected again likewise.
    this.#stopListening = [
      onEvents(runner.connection, ["end"], () => connection.disconnect()),
      onEvents(runner.connection, ["ready"], () => this.#reconnect()),
    ];
  }

  /** How many scripts were sent on its connection. */
  get sent(): number {
    return this.#sender.sent;
  }

  /**
   * Runs a granting script on the lock `key`; `granted` says of what was read from its reply whether it was granted.
   * @throws REPLICAS if it was granted and too few acknowledged: the caller undoes it
   */
  async call<K extends KeyValues, A extends ArgumentValues, T>(
    key: string,
    call: Call<K, A>,
    read: Reader<T>,
    granted: (value: T) => boolean,
  ): Promise<T> {
    const { runner, required, timeout } = this.#options;
    const { lockName, script, keys, args } = call;
    const prepared = this.#sender.prepare(script, keys, args);
    const send = () => this.#enqueue(key, prepared);
    // It may have to wait for the WAIT before its own.
    const within = (call.within ?? runner.commandTimeout) + 2 * timeout;
    const answer = await runner.send(
      { lockName, keys, send, blocks: true },
      (pair) => pair as Acknowledged,
      within,
    );
    const value = read(answer.reply);
    if (granted(value) && answer.acknowledged < required) {
      throw new ReplicationError(lockName, answer.acknowledged, required);
    }
    return value;
  }

  close(): void {
    for (const stop of this.#stopListening) stop();
    this.#options.connection.disconnect();
  }

  #reconnect(): void {
    const { connection } = this.#options;
    if (connection.status !== "end") return;
    connection.connect().catch(() => {
      // The calls on it report what is wrong.
    });
  }

  #enqueue(key: string, script: EvalArguments): Promise<Acknowledged> {
    // By the user's options it may have given up, and nothing else would bring it back.
    if (this.#options.runner.connected) this.#reconnect();
    // One pipeline, and one WAIT, are for one server.
    const server = masterAddress(this.#options.connection, key);
    return new Promise((resolve, reject) => {
      const grant = { script, resolve, reject };
      const next = this.#next.get(server);
      if (next) next.push(grant);
      else this.#start(server, [grant]);
    });
  }

  #start(server: string, grants: Grant[]): void {
    // Those of one tick travel together.
    this.#next.set(server, grants);
    nextTick(() => {
      const next: Grant[] = [];
      this.#next.set(server, next);
      const { clock, commandTimeout } = this.#options.runner;
      let open = true;
      const done = () => {
        if (!open) return;
        open = false;
        cancel();
        if (next.length > 0) this.#start(server, next);
        else this.#next.delete(server);
      };
      // A connection that does not answer must not hold the next ones up for ever.
      const cancel = clock.after(commandTimeout + this.#options.timeout, () => {
        lookForMasters(this.#options.connection);
        done();
      });
      this.#send(grants).then(done, done);
    });
  }

  async #send(grants: readonly Grant[]): Promise<void> {
    const { required, timeout } = this.#options;
    try {
      const scripts = grants.map(({ script }) => script);
      const { replies, acknowledged } = await this.#sender.sendAndWait(scripts, required, timeout);
      for (const [i, { resolve, reject }] of grants.entries()) {
        const [error, reply] = replies[i] as (typeof replies)[number];
        if (error) this.#refuse(reject, error);
        else resolve({ reply, acknowledged });
      }
    } catch (error) {
      for (const { reject } of grants) this.#refuse(reject, error);
    }
  }

  /** ioredis follows a slot that has moved, but not when one command of a pipeline has found what it wanted: the WAIT. */
  #refuse(reject: (error: unknown) => void, error: unknown): void {
    if (isMoved(error)) lookForMasters(this.#options.connection);
    reject(error);
  }
}
