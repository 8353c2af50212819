/**
 * Sends grants that replicas must acknowledge. WAIT counts the writes of its own connection and blocks it, so grants have
 * a connection of their own, and a WAIT behind them. Grants that come while a WAIT blocks it share the next WAIT: with a
 * WAIT for each grant, the time-outs of a stalled replica would add up.
 */
import { ReplicationError } from "../base/errors.js";
import { nextTick } from "../base/platform.js";
import { quietly } from "../base/work.js";
import { type EvalArguments, isReplyOf } from "../scripts/script.js";
import type { AnyScriptCall, Reader } from "./call.js";
import type { CommandRunner } from "./command-runner.js";
import { type Connection, isCluster, lookForMasters, masterAddress, nodeAt, reset } from "./connection.js";
import { isMoved } from "./failures.js";
import { type Acknowledged, Sender } from "./sender.js";

export interface ReplicasOptions {
  readonly runner: CommandRunner;
  readonly connection: Connection;
  readonly required: number;
  /** Milliseconds, on top of the time-out of the command. */
  readonly timeout: number;
  readonly legacyServer: boolean;
}

/** The request of one call, however often its script is sent. */
interface Request {
  readonly script: EvalArguments;
  /** Names the call, if {@link Replicas.end} may end it. */
  readonly id: string | undefined;
  /** Parts that are open: the call itself, and its commands without an answer. */
  open: number;
  /** Set once the call is over: gives back a grant that comes all the same. */
  undo: (() => void) | undefined;
}

/** A grant that waits for its turn to be sent. */
interface Grant {
  readonly request: Request;
  readonly resolve: (answer: Acknowledged) => void;
  readonly reject: (error: unknown) => void;
}

/** Whether the call still wants the grant; if not, the grant is rejected. */
function isWanted({ request, reject }: Grant): boolean {
  if (request.undo) reject(new Error("its call is over"));
  return !request.undo;
}

export class Replicas {
  readonly #options: ReplicasOptions;
  readonly #sender: Sender;
  /** The grants of the next batch, by server; there while a batch is under way to that server. */
  readonly #next = new Map<string, Grant[]>();
  /** Open requests, by the ids of their calls. */
  readonly #requests = new Map<string, Set<Request>>();

  constructor(options: ReplicasOptions) {
    const { connection, legacyServer, runner } = options;
    this.#options = options;
    this.#sender = new Sender(connection, legacyServer);
    for (const loss of ["close", "-node", "node error"]) connection.on(loss, () => runner.connectionEpoch++);
  }

  /** How many scripts were sent on this connection. */
  get sent(): number {
    return this.#sender.sent;
  }

  /**
   * Runs a script that grants the lock `key`; `granted` says whether the value read from its reply is a grant.
   * `id`: the call's, by which {@link end} ends it.
   * @throws REPLICAS if the lock was granted but too few replicas acknowledged: the caller undoes the grant
   */
  async call<T>(
    key: string,
    call: AnyScriptCall,
    read: Reader<T>,
    granted: (value: T) => boolean,
    id?: string,
  ): Promise<T> {
    const { runner, required, timeout } = this.#options;
    const { lockName, script, keys, args } = call;
    const prepared = this.#sender.prepare(script, keys, args);
    const request: Request = { script: prepared, id, open: 0, undo: undefined };
    const send = () => {
      const sent = this.#enqueue(key, request);
      const handled = sent.then(({ reply }) => {
        if (request.undo && granted(read(reply))) request.undo();
      });
      this.#open(request, handled);
      return sent;
    };
    // The command may have to wait for an earlier WAIT, and then for its own.
    const within = (call.within ?? runner.commandTimeout) + 2 * timeout;
    const command = { lockName, keys, send, blocks: true };
    const check = (pair: unknown) => {
      if (isReplyOf(script, (pair as Acknowledged).reply)) return pair as Acknowledged;
      throw new Error(`${script.name} gives no such reply`);
    };
    const answered = runner.send(command, check, within);
    this.#open(request, answered);
    const answer = await answered;
    const value = read(answer.reply);
    if (granted(value) && answer.acknowledged < required) {
      throw new ReplicationError(lockName, answer.acknowledged, required);
    }
    return value;
  }

  /** The call is over: grants that are not sent yet are dropped, and a grant that comes all the same is undone. */
  end(id: string, undo: () => void): void {
    for (const request of this.#requests.get(id) ?? []) request.undo = undo;
  }

  /** A part of the request is open until `work` has settled. */
  #open(request: Request, work: Promise<unknown>): void {
    const { id } = request;
    if (id === undefined) return void quietly(work);
    const requests = this.#requests.get(id) ?? new Set();
    this.#requests.set(id, requests.add(request));
    request.open++;
    void quietly(work).then(() => {
      if (--request.open === 0) requests.delete(request);
      if (requests.size === 0) this.#requests.delete(id);
    });
  }

  #enqueue(key: string, request: Request): Promise<Acknowledged> {
    // A pipeline and its WAIT can go to one server only.
    const server = masterAddress(this.#options.connection, key);
    return new Promise((resolve, reject) => {
      const grant = { request, resolve, reject };
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

  async #send(grants: readonly Grant[]): Promise<void> {
    const { required, timeout } = this.#options;
    if (grants.length === 0) return;
    try {
      const scripts = grants.map(({ request }) => request.script);
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

  /** ioredis follows a slot that has moved, but not if one command of the pipeline, the WAIT, got its answer. */
  #refuse(reject: (error: unknown) => void, error: unknown): void {
    if (isMoved(error)) lookForMasters(this.#options.connection);
    reject(error);
  }
}
