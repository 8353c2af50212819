/** The plain lock on the wire: one hash, owner → hold count. Redisson's RLock. */
import type { LockError } from "../base/errors.js";
import type { LockKind } from "../base/events.js";
import { callTombstone, lockChannel, tombstone } from "../base/names.js";
import type { Link } from "../redis/link.js";
import {
  lockAcquire,
  lockExtend,
  lockForce,
  lockReenter,
  lockRelease,
  lockRenew,
  lockState,
  lockUndo,
} from "../scripts/generated.js";
import type { Renewal, Renewer } from "../watchdog/watchdog.js";
import type { Env } from "./env.js";
import {
  type Acquired,
  DONE,
  type LockState,
  type Primitive,
  type Rest,
  TAKEN,
  TOMBSTONE_TTL,
} from "./primitive.js";
import { noop } from "./work.js";

/** All numbers of a reply. */
function words(reply: unknown): number[] {
  return (reply as unknown[]).map(Number);
}

/** Renews locks whose state is one hash: plain, fenced, fair, and the write side. */
export class HashRenewer implements Renewer {
  readonly #link: Link;
  readonly #lease: number;

  constructor(link: Link, lease: number) {
    this.#link = link;
    this.#lease = lease;
  }

  renew(renewals: readonly Renewal[]): Promise<readonly number[]> {
    const keys = { locks: renewals.map(({ key }) => key) };
    const args = { lease: this.#lease, owners: renewals.map(({ field }) => field) };
    // Given up in time for another try within the lease.
    const within = Math.min(this.#link.commandTimeout, this.#lease / 3);
    return this.#link.call(
      { lockName: renewals[0]?.key ?? "", script: lockRenew, keys, args, within },
      words,
    );
  }
}

/** The server's word on a hold. */
const word = Number;

/** A key that holds other data by now was taken from its holder. */
function takenByOthers(error: LockError): number | undefined {
  return error.code === "WRONG_DATA" ? TAKEN : undefined;
}

function readAcquired(reply: unknown): Acquired {
  const [granted, ttl] = reply as unknown[];
  return Number(granted) === DONE ? GRANTED : { granted: false, ttl: Number(ttl) };
}

const GRANTED: Acquired = { granted: true };

export class PlainPrimitive implements Primitive {
  readonly kind: LockKind = "lock";
  readonly lockName: string;
  readonly key: string;
  readonly channel: string;
  readonly renewer: Renewer;
  readonly side = "only";
  readonly sharing = "exclusive";
  readonly #env: Env;

  constructor(env: Env, lockName: string, key: string, renewer: Renewer) {
    this.#env = env;
    this.lockName = lockName;
    this.key = key;
    this.channel = lockChannel(key);
    this.renewer = renewer;
  }

  field(wireId: string): string {
    return wireId;
  }

  acquire(wireId: string, lease: number, within: number): Promise<Acquired> {
    const { lockName } = this;
    const keys = { lock: this.key, tombstone: tombstone(this.key, wireId) };
    const call = { lockName, script: lockAcquire, keys, args: { owner: wireId, lease }, within };
    const { link, replicas } = this.#env;
    if (!replicas) return link.call(call, readAcquired);
    return replicas.call(this.key, call, readAcquired, ({ granted }) => granted);
  }

  reenter(wireId: string, callId: string, count: number, lease: number, within: number): Promise<number> {
    const { lockName } = this;
    const keys = { lock: this.key, tombstone: callTombstone(this.key, callId) };
    const call = { lockName, script: lockReenter, keys, args: { owner: wireId, count, lease }, within };
    const { link, replicas } = this.#env;
    if (!replicas) return link.call(call, word, takenByOthers);
    return replicas.call(this.key, call, word, (reply) => reply === DONE);
  }

  release(wireId: string, callId: string, rest: () => Rest, onSilence: () => void): Promise<number> {
    const call = () => {
      const { count, left } = rest();
      // The wire id is over unless holds are left.
      const marker = count > 0 && left > 0 ? callTombstone(this.key, callId) : tombstone(this.key, wireId);
      return this.#ending(lockRelease, marker, wireId, { count, left });
    };
    return this.#env.link.insist(call, word, onSilence, takenByOthers);
  }

  undo(wireId: string, callId: string | undefined, rest: () => Rest): Promise<unknown> {
    const marker = callId === undefined ? tombstone(this.key, wireId) : callTombstone(this.key, callId);
    return this.#env.link.insist(() => this.#ending(lockUndo, marker, wireId, rest()), word, noop);
  }

  extend(wireId: string, callId: string, lease: number): Promise<number> {
    const { lockName, key } = this;
    const keys = { lock: key, tombstone: callTombstone(key, callId) };
    const call = { lockName, script: lockExtend, keys, args: { owner: wireId, lease } };
    return this.#env.link.call(call, word, takenByOthers);
  }

  async force(): Promise<boolean> {
    const { link } = this.#env;
    const { lockName, key, channel } = this;
    const args = { publish: link.publishCommand };
    const call = { lockName, script: lockForce, keys: { lock: key, channel }, args };
    return (await link.call(call, word)) === DONE;
  }

  async state(wireId: string): Promise<LockState> {
    const { lockName, key } = this;
    const call = { lockName, script: lockState, keys: { lock: key }, args: { owner: wireId } };
    const [held = 0, count = 0, ttl = 0] = await this.#env.link.call(call, words);
    return { held: held === 1, count, ttl };
  }

  /** A command that ends a hold, or a call for one, and leaves `marker`. */
  #ending(script: typeof lockRelease, marker: string, owner: string, { count, left }: Rest) {
    const { lockName, key, channel } = this;
    const keys = { lock: key, channel, tombstone: marker };
    const publish = this.#env.link.publishCommand;
    return { lockName, script, keys, args: { owner, count, left, tombstoneTtl: TOMBSTONE_TTL, publish } };
  }
}
