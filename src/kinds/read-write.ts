/**
 * The two sides of a read-write lock. Both are one grant of their owner under one wire id. Many owners can read at a time,
 * each with a lease of its own; where writers go first, the server knows which writers wait.
 */
import type { LockKind } from "../base/events.js";
import { readHold, readWriteChannel, waitingWriters, writeField, writerOf } from "../base/names.js";
import type { Side, Traits } from "../base/traits.js";
import type { Env } from "../env.js";
import type { AnyScriptCall } from "../redis/call.js";
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
import type { RenewalScript } from "../watchdog/watchdog.js";
import { aliveFor, type Counts, type Downgrading, type Heir, Kind, siteName, type Try } from "./kind.js";
import { renewReadWrite } from "./renewers.js";

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
    return renewReadWrite;
  }

  override extraKeys(wireId: string, reads: number): readonly string[] {
    return reads > 0 ? [readHold(this.key, wireId, 1)] : [];
  }

  override keep(wireId: string, { reads, writes }: Counts, lease: number): AnyScriptCall {
    const keys = { locks: [this.key, ...this.extraKeys(wireId, reads)] };
    const args = {
      lease,
      owners: [wireId],
      reads: [String(reads)],
      writes: writes ? [String(writes)] : [""],
    };
    return this.call(readWriteKeep, keys, args);
  }

  override end(wireIds: readonly string[], next = ""): AnyScriptCall {
    const { key, channel } = this;
    const tombstones = wireIds.map((id) => this.over(id));
    const nextTombstone = this.over(next);
    const keys = { lock: key, channel, writers: waitingWriters(key), nextTombstone, tombstones };
    const alive = next === "" ? 0 : aliveFor(this.env);
    const args = { owners: wireIds, nextWriter: next, aliveFor: alive, ...this.ending };
    return this.call(readWriteEnd, keys, args);
  }

  /** Ends the write side of an owner that goes on with so many read holds until its deadline, in `left` milliseconds. */
  downgrade(wireId: string, reads: number, left: number): AnyScriptCall {
    const { key, channel } = this;
    const field = writeField(wireId);
    const keys = {
      lock: key,
      channel,
      sideTombstone: this.over(field),
      hold: readHold(key, wireId, 1),
    };
    return this.call(writeDowngrade, keys, { owner: wireId, field, reads, left, ...this.ending });
  }
}

export class Read extends ReadWrite {
  constructor(env: Env, lockName: string, key: string, prefersWriters: boolean) {
    super(env, lockName, key, { shared: true }, prefersWriters);
  }

  override get side(): Side {
    return "read";
  }

  override get yieldsTo(): string | undefined {
    return this.prefersWriters ? siteName("write", true, this.key) : undefined;
  }

  override take(wireId: string, { lease }: Try): AnyScriptCall {
    const { key } = this;
    const keys = {
      lock: key,
      tombstone: this.over(wireId),
      hold: readHold(key, wireId, 1),
      writers: waitingWriters(key),
    };
    return this.call(readTake, keys, { owner: wireId, lease, yield: Number(this.prefersWriters) });
  }

  override force(callId: string): AnyScriptCall {
    return this.call(readForce, this.forceKeys(callId), this.forceArguments);
  }

  protected override isHolder(field: string, left: number): boolean {
    return left > 0 && writerOf(field) === undefined;
  }
}

export class Write extends ReadWrite {
  constructor(env: Env, lockName: string, key: string, prefersWriters: boolean) {
    super(env, lockName, key, { passes: true, advertised: prefersWriters }, prefersWriters);
  }

  override get side(): Side {
    return "write";
  }

  override take(wireId: string, { lease, wait }: Try): AnyScriptCall {
    const { key } = this;
    const field = writeField(wireId);
    const keys = {
      lock: key,
      tombstone: this.over(wireId),
      sideTombstone: this.over(field),
      writers: waitingWriters(key),
    };
    const alive = wait > 0 && this.prefersWriters ? aliveFor(this.env) : 0;
    return this.call(writeTake, keys, { owner: wireId, field, lease, aliveFor: alive });
  }

  override pass(wireId: string, heir: Heir, next = ""): AnyScriptCall {
    const keys = {
      successorSide: this.over(writeField(heir.wireId)),
      writers: waitingWriters(this.key),
      nextTombstone: this.over(next),
      ...this.passKeys(wireId, heir),
    };
    const more = {
      field: writeField(wireId),
      successorField: writeField(heir.wireId),
      nextWriter: next,
      aliveFor: next === "" ? 0 : aliveFor(this.env),
    };
    return this.call(writePass, keys, { ...more, ...this.passArguments(wireId, heir) });
  }

  override force(callId: string): AnyScriptCall {
    return this.call(writeForce, this.forceKeys(callId), this.forceArguments);
  }

  protected override isHolder(field: string): boolean {
    return writerOf(field) !== undefined;
  }

  protected override fieldOf(wireId: string): string {
    return writeField(wireId);
  }
}
