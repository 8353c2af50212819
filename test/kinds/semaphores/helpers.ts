/** Clients on real servers that use a semaphore, permits or a latch of one name, each behind a proxy of its own. */
import { expect } from "vitest";
import { permitLeases } from "../../../src/base/names.js";
import type {
  CountDownLatch,
  LockClientOptions,
  PermitExpirableSemaphore,
  Semaphore,
} from "../../../src/index.js";
import { NamedBeds } from "../../faults/beds.js";
import { atLast, type BedOptions, type Stage } from "../../faults/harness.js";
import { isMarker } from "../../support/key-state.js";
import type { Counts, Faces } from "./place.js";

type Setting = LockClientOptions & Pick<BedOptions, "topology" | "redis">;

/** The name is that of the first client's bed. */
export class Site extends NamedBeds implements Faces {
  /**
   * A client for each of these settings, one by default. Each client knows the server's time: its first call asks for that,
   * and a test's fault must strike the call that counts.
   */
  static async of(stage: Stage, ...settings: readonly Setting[]): Promise<Site> {
    const beds = await Promise.all(
      (settings.length === 0 ? [{}] : settings).map(
        ({ topology = "standalone", redis = {}, ...client }: Setting) =>
          stage.bed({ topology, redis, client }),
      ),
    );
    const site = new Site(beds);
    for (const { client } of beds) await atLast(() => client.getCountDownLatch(`{${site.name}}`).countDown());
    return site;
  }

  semaphore(i = 0): Semaphore {
    return this.client(i).getSemaphore(this.name);
  }

  permits(i = 0): PermitExpirableSemaphore {
    return this.client(i).getPermitExpirableSemaphore(this.name);
  }

  latch(i = 0): CountDownLatch {
    return this.client(i).getCountDownLatch(this.name);
  }

  call(command: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return this.redis.call(command, ...args);
  }

  async counts(): Promise<Counts> {
    const leases = permitLeases(this.name);
    for (const [key, { ttl }] of Object.entries(await this.bed(0).keys())) {
      if (key === this.name) expect(ttl).toBe(-1);
      if (key === this.name || key === leases) continue;
      expect([isMarker(key), ttl > 0, ttl <= 60_000], key).toEqual([true, true, true]);
    }
    return [await this.redis.get(this.name), await this.redis.zcard(leases)];
  }
}
