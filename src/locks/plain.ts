/** The plain lock on the wire: one hash, owner → hold count. Redisson's RLock. */
import { isLockError } from "../base/errors.js";
import type { LockKind } from "../base/events.js";
import { lockChannel, tombstone } from "../base/names.js";
import type { Call, Link } from "../redis/link.js";
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
import type { ArgumentValues, KeyValues } from "../scripts/script.js";
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

/** Renews locks whose state is one hash: plain, fenced, fair, and the write side. */
export class HashRenewer implements Renewer {
  readonly #link: Link;
  readonly #lease: number;

  constructor(link: Link, lease: number) {
    this.#link = link;
    this.#lease = lease;
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly number[]> {
    const reply = await this.#link.call({
      lockName: renewals[0]?.key ?? "",
      script: lockRenew,
      keys: { locks: renewals.map(({ key }) => key) },
      args: { lease: this.#lease, owners: renewals.map(({ field }) => field) },
    });
    return (reply as unknown[]).map(Number);
  }
}

/** The server's word on a hold. A key that holds other data by now was taken from its holder. */
async function wordOf(reply: Promise<unknown>): Promise<number> {
  try {
    return Number(await reply);
  } catch (error) {
    if (isLockError(error, "WRONG_DATA")) return TAKEN;
    throw error;
  }
}

export class PlainPrimitive implements Primitive {
  readonly kind: LockKind = "lock";
  readonly lockName: string;
  readonly key: string;
  readonly channel: string;
  readonly renewer: Renewer;
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

  async acquire(wireId: string, lease: number, within: number): Promise<Acquired> {
    const reply = await this.#grant(
      {
        lockName: this.lockName,
        script: lockAcquire,
        keys: { lock: this.key, tombstone: tombstone(this.key, wireId) },
        args: { owner: wireId, lease },
        within,
      },
      (words) => Number((words as unknown[])[0]) === DONE,
    );
    const [word, ttl] = reply as unknown[];
    return Number(word) === DONE ? { granted: true } : { granted: false, ttl: Number(ttl) };
  }

  reenter(wireId: string, callId: string, count: number, lease: number, within: number): Promise<number> {
    const reply = this.#grant(
      {
        lockName: this.lockName,
        script: lockReenter,
        keys: { lock: this.key, tombstone: tombstone(this.key, callId) },
        args: { owner: wireId, count, lease },
        within,
      },
      (word) => Number(word) === DONE,
    );
    return wordOf(reply);
  }

  async release(wireId: string, rest: () => Rest): Promise<number | undefined> {
    const reply = this.#env.link.insist(() => ({
      lockName: this.lockName,
      script: lockRelease,
      keys: this.#keys(wireId),
      args: this.#end(wireId, rest()),
    }));
    const word = await wordOf(reply);
    return Number.isNaN(word) ? undefined : word;
  }

  undo(wireId: string, callId: string | undefined, rest: () => Rest): Promise<unknown> {
    return this.#env.link.insist(() => ({
      lockName: this.lockName,
      script: lockUndo,
      keys: this.#keys(callId ?? wireId),
      args: this.#end(wireId, rest()),
    }));
  }

  extend(wireId: string, lease: number): Promise<number> {
    const { lockName } = this;
    const call = { lockName, script: lockExtend, keys: { lock: this.key }, args: { owner: wireId, lease } };
    return wordOf(this.#env.link.call(call));
  }

  async force(): Promise<boolean> {
    const { link } = this.#env;
    const keys = { lock: this.key, channel: this.channel };
    const args = { publish: link.publishCommand };
    return Number(await link.call({ lockName: this.lockName, script: lockForce, keys, args })) === 1;
  }

  async state(wireId: string): Promise<LockState> {
    const { lockName } = this;
    const call = { lockName, script: lockState, keys: { lock: this.key }, args: { owner: wireId } };
    const [held, count, ttl] = (await this.#env.link.call(call)) as unknown[];
    return { held: Number(held) === 1, count: Number(count), ttl: Number(ttl) };
  }

  #keys(id: string): { lock: string; channel: string; tombstone: string } {
    return { lock: this.key, channel: this.channel, tombstone: tombstone(this.key, id) };
  }

  #end(wireId: string, rest: Rest) {
    const { link } = this.#env;
    return { owner: wireId, ...rest, tombstoneTtl: TOMBSTONE_TTL, publish: link.publishCommand };
  }

  #grant<K extends KeyValues, A extends ArgumentValues>(
    call: Call<K, A>,
    granted: (reply: unknown) => boolean,
  ): Promise<unknown> {
    const { link, replicas } = this.#env;
    return replicas ? replicas.call(call, granted) : link.call(call);
  }
}
