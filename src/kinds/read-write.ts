/**
 * The two sides of a read-write lock. Both are one grant of their owner under one wire id. Many owners can read at a time,
 * each with a lease of its own; where writers go first, the server knows which writers wait.
 */
import type { LockKind } from "../base/events.js";
import {
  readHold,
  readWriteChannel,
  tombstone,
  tombstones,
  waitingWriters,
  writeField,
} from "../base/names.js";
import type { Env } from "../env.js";
import {
  readForce,
  readTake,
  readWriteEnd,
  readWriteKeep,
  writeDowngrade,
  writeForce,
  writePass,
  writeTake,
} from "../scripts/generated.js";
import type { ScriptCall } from "../scripts/script.js";
import type { Traits } from "../waiting/wanted.js";
import type { RenewalScript } from "../watchdog/watchdog.js";
import { aliveFor, type Counts, type Downgrading, type Heir, Kind, TOMBSTONE_TTL, type Try } from "./kind.js";

const renew: RenewalScript = (batch, lease) =>
  readWriteKeep.with(
    [...batch.map(({ key }) => key), ...batch.flatMap(({ extraKeys }) => extraKeys)],
    [lease, ...batch.flatMap(({ field }) => [field, "", ""])],
  );

abstract class ReadWrite extends Kind implements Downgrading {
  /** Whether waiting writers go before readers that come later. */
  readonly prefersWriters: boolean;

  constructor(env: Env, lockName: string, key: string, traits: Traits, prefersWriters: boolean) {
    super(env, lockName, key, traits);
    this.prefersWriters = prefersWriters;
  }

  override get kind(): LockKind {
    return "readwrite";
  }

  override get channel(): string {
    return readWriteChannel(this.key);
  }

  override get renewer(): RenewalScript {
    return renew;
  }

  override extraKeys(wireId: string, reads: number): readonly string[] {
    return reads > 0 ? [readHold(this.key, wireId, 1)] : [];
  }

  override keep(wireId: string, { reads, writes }: Counts, lease: number): ScriptCall {
    return readWriteKeep.with(
      [this.key, ...this.extraKeys(wireId, reads)],
      [lease, wireId, String(reads), writes ? String(writes) : ""],
    );
  }

  override end(wireIds: readonly string[], next = ""): ScriptCall {
    const { key, channel, publish } = this;
    const alive = next === "" ? 0 : aliveFor(this.env);
    return readWriteEnd.with(
      [key, channel, waitingWriters(key), tombstone(key, next), ...tombstones(key, wireIds)],
      [TOMBSTONE_TTL, publish, next, alive, ...wireIds],
    );
  }

  /** Ends the write side of an owner that goes on with so many read holds until its deadline, in `left` milliseconds. */
  downgrade(wireId: string, reads: number, left: number): ScriptCall {
    const { key, channel, publish } = this;
    const field = writeField(wireId);
    return writeDowngrade.with(
      [key, channel, tombstone(key, field), readHold(key, wireId, 1)],
      [wireId, field, reads, left, TOMBSTONE_TTL, publish],
    );
  }
}

export class Read extends ReadWrite {
  constructor(env: Env, lockName: string, key: string, prefersWriters: boolean) {
    const yieldsTo = prefersWriters ? "write" : undefined;
    super(env, lockName, key, { side: "read", yieldsTo, shared: true }, prefersWriters);
  }

  override take(wireId: string, { lease }: Try): ScriptCall {
    const { key } = this;
    return readTake.with(
      [key, tombstone(key, wireId), readHold(key, wireId, 1), waitingWriters(key)],
      [wireId, lease, Number(this.prefersWriters)],
    );
  }

  override force(callId: string): ScriptCall {
    return readForce.with(this.forceKeys(callId), this.forceArguments);
  }
}

export class Write extends ReadWrite {
  constructor(env: Env, lockName: string, key: string, prefersWriters: boolean) {
    super(env, lockName, key, { side: "write", passes: true, advertised: prefersWriters }, prefersWriters);
  }

  override take(wireId: string, { lease, wait }: Try): ScriptCall {
    const { key } = this;
    const field = writeField(wireId);
    const alive = wait > 0 && this.prefersWriters ? aliveFor(this.env) : 0;
    return writeTake.with(
      [key, tombstone(key, wireId), tombstone(key, field), waitingWriters(key)],
      [wireId, field, lease, alive],
    );
  }

  override pass(wireId: string, { wireId: successor, lease }: Heir, next = ""): ScriptCall {
    const { key, channel, publish } = this;
    const [field, successorField] = [writeField(wireId), writeField(successor)];
    const alive = next === "" ? 0 : aliveFor(this.env);
    return writePass.with(
      [
        key,
        channel,
        tombstone(key, wireId),
        tombstone(key, successor),
        tombstone(key, successorField),
        waitingWriters(key),
        tombstone(key, next),
      ],
      [wireId, field, successor, successorField, lease, TOMBSTONE_TTL, publish, next, alive],
    );
  }

  override force(callId: string): ScriptCall {
    return writeForce.with(this.forceKeys(callId), this.forceArguments);
  }
}
