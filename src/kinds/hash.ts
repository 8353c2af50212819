/**
 * The backend of the plain lock, and the base of all kinds: a hash whose fields are owners and their hold counts. Each kind
 * overrides the steps that differ.
 */
import type { LockKind } from "../base/events.js";
import { callTombstone, lockChannel, tombstone } from "../base/names.js";
import { noop } from "../base/work.js";
import type { Passed, QueueTraits, Successor } from "../engine/acquisition.js";
import {
  type Acquired,
  type Backend,
  DONE,
  type Giving,
  type LockState,
  type Rest,
  type Side,
  type Try,
} from "../locks/backend.js";
import type { Env } from "../locks/env.js";
import {
  lockAcquire,
  lockExtend,
  lockForce,
  lockPass,
  lockReenter,
  lockRelease,
  lockState,
  lockUndo,
} from "../scripts/generated.js";
import type { ArgumentValues, KeyValues, Script } from "../scripts/script.js";
import type { Renewer } from "../watchdog/watchdog.js";
import {
  type AnyCall,
  type Ending,
  type EndingArguments,
  forceArguments,
  type ReleaseKeys,
  remaining,
  takenByOthers,
  word,
  words,
} from "./calls.js";
import { passArguments, passKeys, readPassed } from "./passing.js";
import { type Undoing, undoSoon } from "./undoing.js";

export interface BackendParts {
  readonly env: Env;
  /** As users know it. */
  readonly lockName: string;
  readonly key: string;
}

const NO_KEYS: readonly string[] = [];
const GRANTED: Acquired = { granted: true };
const TRAITS: QueueTraits = { serverQueued: false, advertised: false, shared: false, handoff: true };

/** Each hold keeps its backend, so a backend stores only what differs from lock to lock. */
export class HashBackend implements Backend {
  readonly lockName: string;
  readonly key: string;
  readonly env: Env;
  readonly traits: QueueTraits;
  /** Made once: V8 would hash a fresh string at each call. `join` makes a flat string, which takes less memory than `+`. */
  readonly queueName: string;

  constructor({ env, lockName, key }: BackendParts, traits: QueueTraits = TRAITS) {
    this.env = env;
    this.lockName = lockName;
    this.key = key;
    this.traits = traits;
    this.queueName = [this.side, traits.advertised, key].join("/");
  }

  get kind(): LockKind {
    return "lock";
  }

  get side(): Side {
    return "only";
  }

  get channel(): string {
    return lockChannel(this.key);
  }

  get renewer(): Renewer {
    return this.env.renewers.lock;
  }

  field(wireId: string): string {
    return wireId;
  }

  extraKeys(_wireId: string, _count: number): readonly string[] {
    return NO_KEYS;
  }

  wakesOn(_wireId: string): string {
    return this.channel;
  }

  acquire(attempt: Try): Promise<Acquired> {
    const call = this.acquiring(attempt);
    call.within = attempt.within;
    // The acquisition has asked the backlog already, before it minted the wire id.
    call.vital = true;
    const read = (reply: unknown) => this.readAcquired(reply, attempt);
    const { runner, replicas } = this.env;
    const isGrant = ({ granted }: Acquired) => granted;
    return replicas?.call(this.key, call, read, isGrant, attempt.wireId) ?? runner.call(call, read);
  }

  reenter(wireId: string, callId: string, count: number, lease: number, within: number): Promise<number> {
    const call = this.reentering(wireId, callTombstone(this.key, callId), count, lease);
    call.within = within;
    const { runner, replicas } = this.env;
    if (replicas) return replicas.call(this.key, call, word, (reply) => reply === DONE, callId);
    return runner.call(call, word, takenByOthers);
  }

  release(wireId: string, callId: string | undefined, giving: Giving): Promise<number> {
    const { rest, onSilence, successor } = giving;
    const call = () => {
      const left = rest();
      if (successor && !successor.gone) return this.passing(wireId, successor);
      // The tombstone ends this one command while holds are left, else the whole wire id.
      const over = callId && left.left > 0 ? callTombstone(this.key, callId) : tombstone(this.key, wireId);
      return this.releasing({ wireId, over, rest: left });
    };
    const read = successor ? (reply: unknown) => this.#readPassed(reply, successor) : word;
    return this.env.runner.callUntilAnswered(call, read, onSilence, takenByOthers);
  }

  undo(wireId: string, callId: string | undefined, rest: () => Rest): Promise<unknown> {
    if (callId === undefined) {
      const undone = () => undoSoon(this, wireId, this.undoesTogether, (undoing) => this.undoing(undoing));
      this.env.replicas?.end(wireId, () => this.env.settle(undone()));
      return undone();
    }
    // The owner's next commands wait for this one, so it is sent at once, not together with other undoings.
    const overs = [callTombstone(this.key, callId)];
    const call = () => this.undoing({ wireIds: [wireId], overs, rest: rest() });
    return this.env.runner.callUntilAnswered(call, word, noop);
  }

  extend(wireId: string, callId: string, holds: Rest): Promise<number> {
    const call = this.extending(wireId, callTombstone(this.key, callId), holds);
    return this.env.runner.call(call, word, takenByOthers);
  }

  async force(callId: string): Promise<boolean> {
    return (await this.env.runner.call(this.forcing(callTombstone(this.key, callId)), word)) === DONE;
  }

  async state(wireId: string): Promise<LockState> {
    const [held = 0, count = 0, ttl = 0] = await this.env.runner.call(this.stating(wireId), words);
    return { held: held === 1, count, ttl };
  }

  protected acquiring({ wireId, lease }: Try): AnyCall {
    const keys = { lock: this.key, tombstone: tombstone(this.key, wireId) };
    return this.call(lockAcquire, keys, { owner: this.field(wireId), lease });
  }

  /** 1 or `{1, _, i…}` granted, `{_, ttl, i…}` refused; i: co-waiters, counted from 1, that must retry. */
  protected readAcquired(reply: unknown, { coWaiters = [] }: Try): Acquired {
    if (Number(reply) === DONE) return GRANTED;
    const [first, ttl = 0, ...indices] = words(reply);
    if (indices.length === 0) return { granted: false, ttl };
    const mustRetry = indices.flatMap((i) => coWaiters[i - 1] ?? []);
    return first === DONE ? { granted: true, mustRetry } : { granted: false, ttl, mustRetry };
  }

  protected reentering(wireId: string, over: string, count: number, lease: number): AnyCall {
    const keys = { lock: this.key, tombstone: over };
    return this.call(lockReenter, keys, { owner: this.field(wireId), count, lease });
  }

  protected releasing(ending: Ending): AnyCall {
    const keys = this.keysWith(ending.over);
    return this.call(lockRelease, keys, this.ending(ending));
  }

  /** Gives the lock back, and grants it to the successor. */
  protected passing(wireId: string, successor: Successor): AnyCall {
    const args = passArguments(this.publish, wireId, successor);
    return this.call(lockPass, passKeys(this, wireId, successor), args);
  }

  protected readPassed(reply: readonly unknown[]): Passed {
    return readPassed(reply);
  }

  protected undoing({ wireIds, overs: tombstones, rest }: Undoing): AnyCall {
    const keys = { lock: this.key, channel: this.channel, tombstones };
    return this.call(lockUndo, keys, { owners: wireIds, ...remaining(rest, this.publish) });
  }

  /** Whether one command can undo the outermost calls of many owners. */
  protected get undoesTogether(): boolean {
    return true;
  }

  protected extending(wireId: string, over: string, { left: lease }: Rest): AnyCall {
    const keys = { lock: this.key, tombstone: over };
    return this.call(lockExtend, keys, { owner: this.field(wireId), lease });
  }

  protected forcing(over: string): AnyCall {
    return this.call(lockForce, this.keysWith(over), forceArguments(this.publish));
  }

  protected stating(wireId: string): AnyCall {
    return this.call(lockState, { lock: this.key }, { owner: wireId });
  }

  protected call<K extends KeyValues, A extends ArgumentValues>(
    script: Script<K, A>,
    keys: NoInfer<K>,
    args: NoInfer<A>,
  ): AnyCall {
    return { lockName: this.lockName, script, keys, args };
  }

  /** The keys of all scripts that give something back; `over`: the tombstone's. */
  protected keysWith(over: string): ReleaseKeys {
    return { lock: this.key, channel: this.channel, tombstone: over };
  }

  /** A release without a successor is answered by a number. */
  #readPassed(reply: unknown, successor: Successor): number {
    if (!Array.isArray(reply)) return word(reply);
    const passed = this.readPassed(reply);
    successor.settle(passed);
    return passed.word;
  }

  protected get publish(): string {
    return this.env.runner.publishCommand;
  }

  /** The arguments that the endings of all kinds share. */
  protected ending({ wireId, rest }: Ending): EndingArguments {
    return { owner: this.field(wireId), ...remaining(rest, this.publish) };
  }
}
