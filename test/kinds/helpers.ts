/** What the tests of the kinds share: clients on one server, and the server's state of a lock and its waiters. */
import { expect } from "vitest";
import {
  fairAlive,
  fairQueue,
  fairTimeouts,
  readHold,
  tokenCounter,
  waitingWriters,
} from "../../src/base/names.js";
import type { Lock, LockClientOptions } from "../../src/index.js";
import { NamedBeds } from "../faults/beds.js";
import { SOON, type Stage } from "../faults/harness.js";
import { until } from "../support/index.js";
import { isMarker } from "../support/key-state.js";

/** The names of a lock's keys. */
export const keysOf: Readonly<Record<"alive" | "timeouts" | "writers", (name: string) => string>> & {
  readonly hold: typeof readHold;
} = {
  alive: fairAlive,
  hold: readHold,
  timeouts: fairTimeouts,
  writers: waitingWriters,
};

export { NEVER, unlockAll } from "../faults/harness.js";

/** Clients on one server. All use the lock that is named after the first one's bed. */
export class Scene extends NamedBeds {
  /** A client for each of these options. */
  static async of(stage: Stage, ...options: readonly LockClientOptions[]): Promise<Scene> {
    return new Scene(await Promise.all(options.map((client) => stage.bed({ client }))));
  }

  fair(i: number): Lock {
    return this.client(i).getFairLock(this.name);
  }

  read(i: number): Lock {
    return this.client(i).getReadWriteLock(this.name).readLock();
  }

  write(i: number): Lock {
    return this.client(i).getReadWriteLock(this.name).writeLock();
  }

  /** The remaining milliseconds of a key. */
  async ttl(key?: string): Promise<number> {
    return (await this.state(key)).ttl;
  }

  /** The fair queue, head first. */
  async queue(): Promise<string[]> {
    return ((await this.state(fairQueue(this.name))).value ?? []) as string[];
  }

  untilQueued(length: number, timeout: number = SOON): Promise<unknown> {
    return until(`${length} are queued`, async () => (await this.queue()).length === length, { timeout });
  }

  /** Soon only markers are left of the lock, which expire, and the fencing counter, which must not expire. */
  async expectNothingLeft(): Promise<void> {
    const left = async (): Promise<string[]> =>
      Object.keys(await this.bed(0).keys()).filter(
        (key) => !isMarker(key) && key !== tokenCounter(this.name),
      );
    await until(`${this.name} is free`, async () => (await left()).length === 0).catch(() => {});
    expect(await left()).toEqual([]);
    for (const [key, { ttl }] of Object.entries(await this.bed(0).keys())) {
      if (!isMarker(key)) continue;
      expect(ttl, key).toBeGreaterThan(0);
      expect(ttl, key).toBeLessThanOrEqual(60_000);
    }
  }
}
