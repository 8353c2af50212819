/**
 * The fair lock: the server keeps a queue, in which each waiter has a ticket and is woken on its own channel. The
 * format is Redisson's, plus one key that says which waiters are alive. By Redisson's time-outs alone, a dead waiter
 * would hold the queue up for minutes.
 */
import type { LockKind } from "../base/events.js";
import { fairAlive, fairQueue, fairTimeouts } from "../base/names.js";
import type { Env } from "../env.js";
import type { AnyScriptCall } from "../redis/call.js";
import { fairEnd, fairForce, fairTake } from "../scripts/generated.js";
import { aliveFor, Kind, type Try } from "./kind.js";

export class Fair extends Kind {
  constructor(env: Env, lockName: string, key: string) {
    super(env, lockName, key, { serverQueued: true });
  }

  override get kind(): LockKind {
    return "fair";
  }

  override wakesOn(wireId: string): string {
    return `${this.channel}:${wireId}`;
  }

  override take(wireId: string, { lease, wait, coWaiters }: Try): AnyScriptCall {
    const keys = { ...this.#keys, tombstone: this.over(wireId) };
    const alive = wait > 0 ? aliveFor(this.env) : 0;
    const args = {
      owner: wireId,
      lease,
      grace: this.#grace,
      aliveFor: alive,
      publish: this.publish,
      coWaiters,
    };
    return this.call(fairTake, keys, args);
  }

  override end(wireIds: readonly string[]): AnyScriptCall {
    const keys = { ...this.#keys, tombstones: wireIds.map((id) => this.over(id)) };
    return this.call(fairEnd, keys, { owners: wireIds, grace: this.#grace, ...this.ending });
  }

  override force(callId: string): AnyScriptCall {
    const keys = { ...this.#keys, ...this.forceKeys(callId) };
    return this.call(fairForce, keys, { grace: this.#grace, ...this.forceArguments });
  }

  get #keys() {
    const { key, channel } = this;
    return {
      lock: key,
      queue: fairQueue(key),
      timeouts: fairTimeouts(key),
      alive: fairAlive(key),
      channel,
    };
  }

  get #grace(): number {
    return this.env.settings.fairWaitTimeout;
  }
}
