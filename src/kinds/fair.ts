/**
 * The fair lock: the server keeps a queue, in which each waiter has a ticket and is woken on its own channel. The
 * format is Redisson's, plus one key that says which waiters are alive. By Redisson's time-outs alone, a dead waiter
 * would hold the queue up for minutes.
 */
import type { LockKind } from "../base/events.js";
import { fairAlive, fairQueue, fairTimeouts, tombstone, tombstones } from "../base/names.js";
import type { Env } from "../env.js";
import { fairEnd, fairForce, fairTake } from "../scripts/generated.js";
import type { ScriptCall } from "../scripts/script.js";
import { aliveFor, Kind, TOMBSTONE_TTL, type Try } from "./kind.js";

export class Fair extends Kind {
  constructor(env: Env, lockName: string, key: string) {
    super(env, lockName, key, { side: "only", serverQueued: true });
  }

  override get kind(): LockKind {
    return "fair";
  }

  override wakesOn(wireId: string): string {
    return `${this.channel}:${wireId}`;
  }

  override take(wireId: string, { lease, wait, coWaiters }: Try): ScriptCall {
    const { key, publish } = this;
    const alive = wait > 0 ? aliveFor(this.env) : 0;
    return fairTake.with(
      [key, fairQueue(key), fairTimeouts(key), fairAlive(key), tombstone(key, wireId), this.channel],
      [wireId, lease, this.#grace, alive, publish, ...coWaiters],
    );
  }

  override end(wireIds: readonly string[]): ScriptCall {
    const { key, publish } = this;
    return fairEnd.with(
      [key, fairQueue(key), fairTimeouts(key), fairAlive(key), this.channel, ...tombstones(key, wireIds)],
      [TOMBSTONE_TTL, publish, this.#grace, ...wireIds],
    );
  }

  override force(callId: string): ScriptCall {
    const [key, channel, marker] = this.forceKeys(callId);
    return fairForce.with(
      [key, fairQueue(key), fairTimeouts(key), fairAlive(key), channel, marker],
      [...this.forceArguments, this.#grace],
    );
  }

  get #grace(): number {
    return this.env.settings.fairWaitTimeout;
  }
}
