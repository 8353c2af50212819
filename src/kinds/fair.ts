/**
 * The fair lock: the server keeps a queue, in which each waiter has a ticket and is woken on its own channel. The format
 * is Redisson's, plus one key that says which waiters are alive: by Redisson's time-outs alone, a dead waiter holds the
 * queue up for minutes.
 */
import type { LockKind } from "../base/events.js";
import { fairAlive, fairQueue, fairTimeouts, tombstone } from "../base/names.js";
import type { QueueTraits } from "../engine/acquisition.js";
import type { Try } from "../locks/backend.js";
import { Lock } from "../locks/lock.js";
import { fairAcquire, fairOldForce, fairRelease, fairUndo } from "../scripts/generated.js";
import { aliveFor } from "./alive-for.js";
import { type AnyCall, type Ending, forceArguments, type ReleaseKeys, remaining } from "./calls.js";
import { type BackendParts, HashBackend } from "./hash.js";
import type { Undoing } from "./undoing.js";

interface QueueKeys {
  readonly queue: string;
  readonly timeouts: string;
  readonly alive: string;
}

type FairKeys = ReleaseKeys & QueueKeys;

const TRAITS: QueueTraits = { serverQueued: true, advertised: false, shared: false, handoff: false };

export class FairBackend extends HashBackend {
  constructor(parts: BackendParts) {
    super(parts, TRAITS);
  }

  override get kind(): LockKind {
    return "fair";
  }

  get #grace(): number {
    return this.env.settings.fairWaitTimeout;
  }

  override wakesOn(wireId: string): string {
    return `${this.channel}:${wireId}`;
  }

  protected override acquiring({ wireId, lease, coWaiters }: Try): AnyCall {
    const { settings } = this.env;
    const keys = this.keysWith(tombstone(this.key, wireId));
    const args = {
      owner: wireId,
      lease,
      grace: this.#grace,
      aliveFor: coWaiters ? aliveFor(settings) : 0,
      publish: this.publish,
      coWaiters: coWaiters ?? [],
    };
    return this.call(fairAcquire, keys, args);
  }

  protected override releasing(ending: Ending): AnyCall {
    const keys = this.keysWith(ending.over);
    const args = { grace: this.#grace, ...this.ending(ending) };
    return this.call(fairRelease, keys, args);
  }

  protected override undoing({ wireIds, overs: tombstones, rest }: Undoing): AnyCall {
    const keys = { lock: this.key, channel: this.channel, tombstones, ...this.#queueKeys };
    const args = { owners: wireIds, grace: this.#grace, ...remaining(rest, this.publish) };
    return this.call(fairUndo, keys, args);
  }

  protected override forcing(over: string): AnyCall {
    const args = { grace: this.#grace, ...forceArguments(this.publish) };
    return this.call(fairOldForce, this.keysWith(over), args);
  }

  protected override keysWith(over: string): FairKeys {
    return Object.assign(super.keysWith(over), this.#queueKeys);
  }

  get #queueKeys(): QueueKeys {
    const { key } = this;
    return { queue: fairQueue(key), timeouts: fairTimeouts(key), alive: fairAlive(key) };
  }
}

/**
 * A reentrant lock that is granted first come first served over all processes: by the order in which the first tries
 * reach the server, whose clock alone counts. A waiter that dies is skipped after three times `pollCap`.
 * @example
 * const turn = client.getFairLock("printer");
 * await turn.run(() => sell("42"), { wait: 60_000 });
 */
export class FairLock extends Lock {}
