/** The server in memory at times that are no whole milliseconds, as a third of a lease may be. */
import { expect, test } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { TestClock } from "../../src/entries/testing/clock.js";
import { Link } from "../../src/entries/testing/link.js";
import { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import { MemoryServer } from "../../src/entries/testing/memory-server.js";
import { LockClient, type LockClientOptions, type RedisConnection } from "../../src/index.js";
import { recordEvents } from "../contract/helpers.js";

/** Many more timers than a client needs in a minute. */
const MOST_TIMERS = 10_000;
const MINUTE = 60_000;

/** A clock that ends a test which would set timers for ever while no time passes. */
class BoundedClock extends TestClock {
  #timers = 0;

  override after(ms: number, callback: () => void): () => void {
    if (++this.#timers > MOST_TIMERS) throw new Error(`time stands still at ${this.now}`);
    return super.after(ms, callback);
  }
}

test.each([3_000, 6_500, 10_000, 30_000])(
  "a lease of %d ms is renewed and told of, and time goes on",
  async (lease) => {
    for (let fraction = 0; fraction < 1; fraction += 0.07) {
      const memory = new MemoryServer(new BoundedClock());
      const connection = new MemoryConnection(new Link(memory), {}, true) as unknown as RedisConnection;
      const options = { watchdogTimeout: lease, [INTERNALS]: { clock: memory.clock } } as LockClientOptions;
      const client = new LockClient(connection, options);
      const events = recordEvents(client);
      await memory.advance(fraction);
      const hold = await client.getLock("job").lock();
      await memory.advance(MINUTE);
      expect(memory.clock.mono()).toBe(fraction + MINUTE);
      expect(hold.isHeld).toBe(true);
      expect(events.filter(({ name }) => name === "renewed").length).toBeGreaterThan(MINUTE / lease);
      await hold.unlock();
    }
  },
);
