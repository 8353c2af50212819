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
import { type Connection, isCluster, lookForMasters, masterAddress, nodeAt, reset } from "./connection.js";
import { isMoved } from "./failures.js";

export interface ReplicasOptions {
  readonly runner: CommandRunner;
  readonly connection: Connection;
  readonly required: number;
  /** Milliseconds, on top of the time-out of the command. */
  readonly timeout: number;
}

/** A reply, and how many replicas have it. */
interface Acknowledged {
  readonly reply: unknown;
  readonly acknowledged: number;
}

/** A grant that waits for its turn to be sent. */
interface Grant {
  readonly script: EvalArguments;
  readonly isWanted: () => boolean;
  readonly resolve: (answer: Acknowledged) => void;
  readonly reject: (error: unknown) => void;
}

/** Whether the call still wants the grant; if not, the grant is rejected. */
function isWanted(grant: Grant): boolean {
  const wanted = grant.isWanted();
  if (!wanted) grant.reject(new Error("its call is over"));
  return wanted;
}

export class Replicas {
  readonly #options: ReplicasOptions;
  /** How many scripts were sent on this connection. */
  sent = 0;
  /** The grants of the next batch, by server; there while a batch is under way to that server. */
  readonly #next = new Map<string, Grant[]>();

  constructor(options: ReplicasOptions) {
    this.#options = options;
    options.runner.watch(options.connection);
  }

  /** Milliseconds that an answer may take longer: for an earlier WAIT, and for its own. */
  get patience(): number {
    return 2 * this.#options.timeout;
  }

  /**
   * The command for a script that grants its first key. If `isGrant` says that the reply is a grant, but too few replicas
   * acknowledged, it fails with REPLICAS, and the caller undoes the grant. It is not sent any more once nobody wants it.
   */
  command(
    lockName: string,
    call: ScriptCall,
    isGrant: (reply: unknown) => boolean,
    isWanted: () => boolean,
  ): PlainCommand {
    const { script, keys } = call;
    const send = async () => {
      // What may grant has no flags, so it has one form for all servers.
      const evaluated = evalArguments(script.legacy.text, call);
      const { reply, acknowledged } = await this.#enqueue(keys[0] ?? "", evaluated, isWanted);
      const { required } = this.#options;
      // One that comes late is undone as any other late grant.
      if (acknowledged < required && isWanted() && isGrant(reply))
        throw new ReplicationError(lockName, acknowledged, required);
      return reply;
    };
    return { script, keys, send };
  }

  #enqueue(key: string, script: EvalArguments, isWanted: () => boolean): Promise<Acknowledged> {
    // A pipeline and its WAIT can go to one server only.
    const server = masterAddress(this.#options.connection, key);
    return new Promise((resolve, reject) => {
      const grant = { script, isWanted, resolve, reject };
      const next = this.#next.get(server);
      if (next) next.push(grant);
      else this.#start(server, [grant]);
    });
  }

  #start(server: string, grants: Grant[]): void {
    // Grants of one tick are sent together.
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
      // A connection that does not answer must not hold up the next batch for ever.
      const cancel = clock.after(commandTimeout + this.#options.timeout, () => {
        this.#replace(server);
        done();
      });
      this.#send(grants.filter(isWanted)).then(done, done);
    });
  }

  /** Connects again: a connection that does not answer may never do so, while TCP keeps it for long. */
  #replace(server: string): void {
    const { connection } = this.#options;
    lookForMasters(connection);
    // Unanswered commands are then sent again at once, while the tombstones of calls that were given up still stand.
    const silent = isCluster(connection) ? nodeAt(connection, server) : connection;
    if (silent) reset(silent);
  }

  /**
   * Sends the scripts of grants and, behind them on the same connection, a WAIT: it counts the writes of its own connection
   * only. On a cluster all keys must be on one server.
   */
  async #send(grants: readonly Grant[]): Promise<void> {
    const { connection, required, timeout } = this.#options;
    if (grants.length === 0) return;
    const pipeline = connection.pipeline();
    for (const { script } of grants) pipeline.eval(...script);
    this.sent += grants.length;
    try {
      const replies = (await pipeline.wait(required, timeout).exec()) ?? [];
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
    if (isMoved(error)) lookForMasters(this.#options.connection);
    reject(error);
  }
}
