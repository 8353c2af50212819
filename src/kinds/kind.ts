/**
 * What is different from kind to kind: the keys of a lock, and how each step looks on the wire. A kind decides nothing
 * about waiting, owners or time. A new kind is one such class and its Lua files.
 */
import type { LockKind } from "../base/events.js";
import { callTombstone, lockChannel, tombstone, tombstones } from "../base/names.js";
import type { Env } from "../env.js";
import { lockInspect, plainEnd, plainForce, plainKeep, plainPass, plainTake } from "../scripts/generated.js";
import { type HolderField, readLock } from "../scripts/inspected.js";
import type { ScriptCall } from "../scripts/script.js";
import { type Traits, Wanted } from "../waiting/wanted.js";
import type { RenewalScript } from "../watchdog/watchdog.js";

/** Milliseconds for which a command may be late or come again (Redisson: 16 to 20 s). */
export const TOMBSTONE_TTL = 20_000;

// What the server says of an owner's sides: 1 if the owner reads, plus WRITES if it writes. It says 0 if nobody has the
// lock, and TAKEN if another owner has it.
export const WRITES = 2;
export const TAKEN = -1;

/** How many holds a grant has on each side; of a lock with one side all are `writes`. */
export interface Counts {
  readonly reads: number;
  readonly writes: number;
}

/** What a try wants. */
export interface Try {
  /** Milliseconds. */
  readonly lease: number;
  /** Milliseconds that the call waits if it is refused; 0: not at all. */
  readonly wait: number;
  /** Waiters of this process whose tickets the try refreshes. */
  readonly coWaiters: readonly string[];
}

/** The answer to a try. `mustRetry`: co-waiters, counted from 1, that have to try for themselves. */
export type Taken =
  | { readonly is: "granted"; readonly token?: bigint; readonly mustRetry?: readonly number[] }
  /** `ttl`: ms until the holder's lease ends, -1 if it has no end. `holder`: the wire id of one holder, as far as is known. */
  | {
      readonly is: "refused";
      readonly ttl: number;
      readonly holder: string;
      readonly mustRetry: readonly number[];
    }
  | { readonly is: "over" };

/** The answer to a release. */
export interface Released {
  /** How many subscribers heard of it; -1 if that is not known. */
  readonly heard: number;
  /** What was found of the wire id. */
  readonly found: number;
  /** The lock was passed on. */
  readonly isPassed: boolean;
  /** The token of who has it now. */
  readonly token: bigint | undefined;
}

/** What the server knows of one side of a lock. */
export interface SideState {
  readonly held: boolean;
  /** Holds of the owner that was asked for. */
  readonly count: number;
  /** Milliseconds; -1 without end, -2 when free. */
  readonly ttl: number;
}

/** The waiting call that a release may grant the lock, and who waits behind it in this process. */
export interface Heir {
  readonly wireId: string;
  /** Milliseconds. */
  readonly lease: number;
}

/** A lock whose owner can end one side and go on with the other. */
export interface Downgrading {
  /** Ends the write side of an owner that goes on with so many read holds until its deadline, in `left` milliseconds. */
  downgrade(wireId: string, reads: number, left: number): ScriptCall;
}

/** The TTL of what nobody holds. */
const FREE = -2;
const NO_KEYS: readonly string[] = [];
const GRANTED: Taken = { is: "granted" };
const OVER: Taken = { is: "over" };
const TRAITS: Traits = { side: "only", passes: true };

/** Renewals leave the counts as they are. */
const renew: RenewalScript = (batch, lease) =>
  plainKeep.with(
    batch.map(({ key }) => key),
    [lease, ...batch.flatMap(({ field }) => [field, ""])],
  );

/** One lock, on one side. */
export class Kind extends Wanted {
  private ownersKey: string | undefined;

  constructor(env: Env, lockName: string, key: string, traits: Traits = TRAITS) {
    super(env, lockName, key, traits);
  }

  /** The name under which owners know the lock, whichever side. Made when it is asked for: most holds are bare. */
  get lockKey(): string {
    this.ownersKey ??= `${this.env.clientId}/${this.key}`;
    return this.ownersKey;
  }

  override get kind(): LockKind {
    return "lock";
  }

  get turnKeys(): readonly string[] {
    return [this.lockKey];
  }

  override get channel(): string {
    return lockChannel(this.key);
  }

  /** Where the waiter of this wire id is woken. */
  wakesOn(_wireId: string): string {
    return this.channel;
  }

  /** How grants of this kind are renewed, many at a time. */
  get renewer(): RenewalScript {
    return renew;
  }

  /** The keys in addition to the lock's that a grant with so many read holds consists of. */
  extraKeys(_wireId: string, _reads: number): readonly string[] {
    return NO_KEYS;
  }

  take(wireId: string, { lease }: Try): ScriptCall {
    const { key } = this;
    return plainTake.with([key, tombstone(key, wireId)], [wireId, lease]);
  }

  /** Reads `1`, `{1, …}`, `{0, ttl, holder, …}` or `{2}`; at the end are those that must retry. */
  readTaken(reply: unknown): Taken {
    if (reply === 1) return GRANTED;
    const [word, ttl, holder, ...others] = reply as unknown[];
    if (Number(word) === 2) return OVER;
    const mustRetry = others.map(Number);
    if (Number(word) === 1) return { is: "granted", mustRetry };
    if (Number(word) !== 0 || typeof ttl === "undefined") throw new Error("no answer to a try");
    return { is: "refused", ttl: Number(ttl), holder: String(holder ?? ""), mustRetry };
  }

  /** Notes the counts of a grant, and raises its TTL. Answers the sum of the sides found, 0 or {@link TAKEN}. */
  keep(wireId: string, { writes }: Counts, lease: number): ScriptCall {
    return plainKeep.with([this.key], [lease, wireId, String(writes)]);
  }

  /** Ends wire ids; `next`: the wire id of the call that waits first in this process. */
  end(wireIds: readonly string[], _next?: string): ScriptCall {
    const { key, channel, publish } = this;
    return plainEnd.with([key, channel, ...tombstones(key, wireIds)], [TOMBSTONE_TTL, publish, ...wireIds]);
  }

  /** Ends a wire id and grants the lock to `heir`; `next` waits behind it. */
  pass(wireId: string, heir: Heir, _next?: string): ScriptCall {
    const { key, channel, publish } = this;
    const { wireId: successor, lease } = heir;
    return plainPass.with(
      [key, channel, tombstone(key, wireId), tombstone(key, successor)],
      [wireId, successor, lease, TOMBSTONE_TTL, publish],
    );
  }

  /** Reads `n` or `{heard, found}` of an END, `{heard, found, passed, token?}` of a PASS. */
  readReleased(reply: unknown): Released {
    if (!Array.isArray(reply)) return { heard: Number(reply), found: 1, isPassed: false, token: undefined };
    const [heard, found, passed, token] = reply as unknown[];
    return {
      heard: Number(heard ?? 0),
      found: Number(found ?? 0),
      isPassed: Number(passed) === 1,
      token: token === undefined ? undefined : BigInt(String(token)),
    };
  }

  /** Ends whoever has it; `callId` names this call alone. Answers the fields that it removed. */
  force(callId: string): ScriptCall {
    return plainForce.with(this.forceKeys(callId), this.forceArguments);
  }

  /** Asks what {@link readState} reads. The keys that only people ask for are one that never exists. */
  state(): ScriptCall {
    const { key, channel } = this;
    return lockInspect.with([key, channel, channel], []);
  }

  /** What the server knows of this side, and of one owner on it. */
  readState(reply: unknown, wireId: string): SideState {
    const { ttl, fields } = readLock(reply);
    // A reader counts while it has a read hold.
    const { side } = this.traits;
    const isHolder = ({ isWriter, left }: HolderField) => {
      if (side === "only") return true;
      return isWriter ? side === "write" : side === "read" && left > 0;
    };
    const holders = fields.filter(isHolder);
    const own = holders.find(({ ownerId }) => ownerId === wireId);
    const held = holders.length > 0;
    return { held, count: own?.count ?? 0, ttl: held ? ttl : FREE };
  }

  protected forceKeys(callId: string): [lock: string, channel: string, marker: string] {
    return [this.key, this.channel, callTombstone(this.key, callId)];
  }

  protected get forceArguments(): [tombstones: string, tombstoneTtl: number, publish: string] {
    return [tombstone(this.key, ""), TOMBSTONE_TTL, this.publish];
  }
}

/** Milliseconds. The sum of this and the server's clock is still exact in Lua's numbers. */
const LONGEST = 2 ** 52;

/**
 * Milliseconds for which the server counts a waiter as alive that it does not hear of. A waiter of this library tries at
 * least every `pollCap`; one try may fail.
 */
export function aliveFor({ settings }: Env): number {
  return Math.min(3 * settings.pollCap, LONGEST);
}
