/**
 * Sends grants that replicas must acknowledge. WAIT counts the writes of its own connection and blocks it, so grants
 * have a connection of their own, and a WAIT behind them. Grants that come while a WAIT blocks it share the next WAIT.
 * With a WAIT for each grant, the time-outs of a stalled replica would add up.
 */
import { ReplicationError } from "../base/errors.js";
import { nextTick } from "../base/platform.js";
import { type EvalArguments, evalArguments, type ScriptCall } from "../scripts/script.js";
import type { PlainCommand } from "./command.js";
import type { CommandRunner } from "./command-runner.js";
import { type Connection, lookForMasters, masterAddress, reset } from "./connection.js";
import { isMoved } from "./failures.js";

export interface ReplicasOptions {
  /** How many must acknowledge a grant. */
  readonly replicas: number;
  /** Milliseconds, on top of the time-out of the command. */
  readonly replicasTimeout: number;
}

/** A reply, and how many replicas have it. */
interface Acknowledged {
  readonly reply: unknown;
  readonly acknowledged: number;
}

/** A grant that waits for its turn to be sent. */
interface Grant {
  readonly script: EvalArguments;
  readonly resolve: (answer: Acknowledged) => void;
  readonly reject: (error: unknown) => void;
}

export class Replicas {
  readonly #runner: CommandRunner;
  readonly #connection: Connection;
  readonly #required: number;
  readonly #timeout: number;
  /** The grants of the next batch, by server; there while a batch is under way to that server. */
  readonly #next = new Map<string, Grant[]>();

  /** `connection`: one of the client's own, which nothing else uses. */
  constructor(runner: CommandRunner, connection: Connection, options: ReplicasOptions) {
    this.#runner = runner;
    this.#connection = connection;
    this.#required = options.replicas;
    this.#timeout = options.replicasTimeout;
    runner.watch(connection);
  }

  /** Milliseconds that an answer may take longer: for an earlier WAIT, and for its own. */
  get patience(): number {
    return 2 * this.#timeout;
  }

  /**
   * The command for a script that grants its first key. If `isGrant` says that the reply is a grant, but too few replicas
   * acknowledged, it fails with REPLICAS, and the caller undoes the grant, as long as somebody wants it.
   */
  command(
    lockName: string,
    call: ScriptCall,
    isGrant: (reply: unknown) => boolean,
    isWanted: () => boolean,
  ): PlainCommand {
    const { script, keys } = call;
    const send = async () => {
      const evaluated = evalArguments(script.text, call);
      const { reply, acknowledged } = await this.#enqueue(keys[0] ?? "", evaluated);
      // One that comes late is undone as any other late grant.
      if (acknowledged < this.#required && isWanted() && isGrant(reply))
        throw new ReplicationError(lockName, acknowledged, this.#required);
      return reply;
    };
    return { script, keys, send };
  }

  #enqueue(key: string, script: EvalArguments): Promise<Acknowledged> {
    // A pipeline and its WAIT can go to one server only.
    const server = masterAddress(this.#connection, key);
    return new Promise((resolve, reject) => {
      const grant = { script, resolve, reject };
      const next = this.#next.get(server);
      if (next) next.push(grant);
      else void this.#start(server, [grant]);
    });
  }

  /** Sends the grants for one server, and then those that have come meanwhile. */
  async #start(server: string, first: Grant[]): Promise<void> {
    const longest = this.#runner.commandTimeout + this.#timeout;
    for (let grants = first; grants.length > 0; grants = this.#next.get(server) ?? []) {
      this.#next.set(server, grants);
      // Grants of one tick are sent together.
      await new Promise<void>(nextTick);
      this.#next.set(server, []);
      const sent = this.#send(grants);
      // A connection that does not answer must not hold up the next batch for ever.
      await this.#runner.withTimeout("", sent, longest).catch(() => this.#replace(server));
    }
    this.#next.delete(server);
  }

  /** Connects again: a connection that does not answer may never do so, while TCP keeps it for long. */
  #replace(server: string): void {
    const connection = this.#connection;
    lookForMasters(connection);
    // Unanswered commands are then sent again at once, while the tombstones of calls that were given up still stand.
    reset(connection, server);
  }

  /**
   * Sends the scripts of grants and, behind them on the same connection, a WAIT: it counts the writes of its own connection
   * only. On a cluster all keys must be on one server.
   */
  async #send(grants: readonly Grant[]): Promise<void> {
    const pipeline = this.#connection.pipeline();
    for (const { script } of grants) pipeline.eval(...script);
    try {
      const replies = (await pipeline.wait(this.#required, this.#timeout).exec()) ?? [];
      const waited = replies.pop();
      // The script's own error says more: a replica refuses both.
      const refused = replies.find(([error]) => error)?.[0];
      if (!waited || waited[0]) throw refused ?? waited?.[0] ?? new Error("no answer to WAIT");
      for (const [i, { resolve, reject }] of grants.entries()) {
        const [error, reply] = replies[i] as (typeof replies)[number];
        if (error) this.#refuse(reject, error);
        else resolve({ reply, acknowledged: Number(waited[1]) });
      }
    } catch (error) {
      for (const { reject } of grants) this.#refuse(reject, error);
    }
  }

  /** ioredis follows a slot that has moved, but not if one command of the pipeline, the WAIT, got its answer. */
  #refuse(reject: (error: unknown) => void, error: unknown): void {
    if (isMoved(error)) lookForMasters(this.#connection);
    reject(error);
  }
}
