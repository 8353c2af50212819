/** Contract section 8: warnings, and what NOT_OWNER says about a bare hold. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { beforeEach, describe, expect, test as plain } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { INTERNALS } from "../../src/client-options.js";
import { type Hold, type Lock, LockClient, MultiLock } from "../../src/index.js";
import {
  connectionLike,
  forTest,
  type RedisServer,
  recordWarnings,
  startRedis,
  UNHURRIED,
  until,
} from "../support/index.js";
import { letGo } from "../support/kept-holds.js";
import { deferred, failure } from "./helpers.js";
import { eachKind } from "./scene.js";

letGo();
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const warnings = recordWarnings();
beforeEach(() => void warnings.splice(0));

function ofCode(code: string): typeof warnings {
  return warnings.filter((warning) => warning.code === code);
}

let gone = 0;
const garbage = new FinalizationRegistry(() => {
  gone++;
});

/** Resolves when all garbage of this moment has been collected, and the callbacks of that have begun. */
async function collected(): Promise<void> {
  const before = gone;
  garbage.register({}, 0);
  await until("garbage is collected", () => {
    collect();
    return gone > before;
  });
  // Callbacks of other registries are separate tasks, and a warning is emitted in a later tick.
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

async function untilFree(lock: Lock): Promise<void> {
  await until("the lock is free", async () => {
    collect();
    return !(await lock.isLocked());
  });
}

/** Takes a hold, and keeps no reference to it. */
async function drop(take: () => Promise<unknown>): Promise<void> {
  await take();
}

eachKind("a bare hold without a lease that is garbage before its unlock", (test) => {
  test("is given back, as often as that happens [B30]", async ({ lock }) => {
    for (let i = 0; i < 2; i++) {
      await drop(() => lock.lock());
      await untilFree(lock);
      await drop(() => lock.tryLock());
      await untilFree(lock);
    }
  });
});

describe("with a server", () => {
  let server: RedisServer;

  beforeEach(async () => {
    server = forTest(await startRedis());
  });

  /** A client that warns about waiting calls after 50 ms instead of 10 s. */
  function hasty(): LockClient {
    const after = (ms: number, callback: () => void) => systemClock.after(ms === 10_000 ? 50 : ms, callback);
    const options = {
      ...UNHURRIED,
      watchdogTimeout: 60_000,
      [INTERNALS]: { clock: { ...systemClock, after } },
    };
    return forTest(new LockClient(connectionLike(server.connect()), options));
  }

  plain("a dropped hold is warned of once per place", async () => {
    const lock = hasty().getLock("a");
    const here = () => lock.lock();
    for (let i = 0; i < 3; i++) {
      await drop(here);
      await untilFree(lock);
    }
    await drop(async () => lock.tryLock());
    await untilFree(lock);
    await until("two warnings", () => warnings.length > 1);
    const told = ofCode("HOLDFAST_DROPPED_HOLD");
    expect(told).toHaveLength(2);
    for (const warning of told) {
      expect(warning.name).toBe("HoldfastWarning");
      expect(warning.message).toContain('"a"');
      expect(warning.message).toContain("unlock()");
      expect(warning.message).toContain("warnings.test.ts");
    }
  });

  plain(
    "a MultiLock's hold that is garbage is given back, not while one of its members is in use",
    async () => {
      const client = hasty();
      const both = new MultiLock(client.getLock("a"), client.getLock("b"));
      let member: Hold | undefined;
      await (async () => {
        member = (await both.lock()).members[0];
      })();
      await collected();
      expect(member?.isHeld).toBe(true);
      member = undefined;
      await until("both are free", async () => {
        collect();
        return (await both.tryLock(0, 1_000)) !== null;
      });
      expect(ofCode("HOLDFAST_DROPPED_HOLD")).toHaveLength(1);
    },
  );

  describe("a call that waits for a bare hold of its own async tree is warned of after 10 s", () => {
    const CALLS: [string, (client: LockClient, signal: AbortSignal) => Promise<unknown>][] = [
      ["lock", (client, signal) => client.getLock("a").lock({ signal })],
      ["tryLock", (client, signal) => client.getLock("a").tryLock(60_000, undefined, { signal })],
      ["run", (client, signal) => client.getLock("a").run(() => {}, { signal })],
      ["lock of a scope", (client, signal) => client.scope(() => client.getLock("a").lock({ signal }))],
    ];

    plain.for(CALLS)("%s", async ([, call]) => {
      const client = hasty();
      const stop = new AbortController();
      const hold = await client.getLock("a").lock();
      const helper = async () => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        return call(client, stop.signal);
      };
      const waiting = helper();
      await until("a warning", () => warnings.length > 0);
      const [warning] = ofCode("HOLDFAST_OWN_HOLD");
      expect(warning?.message).toMatch(/"a".*10 s.*bare hold of its own async tree/);
      expect(warning?.message).toContain("client.scope()");
      expect(warning?.message).toContain("warnings.test.ts");
      stop.abort();
      await failure(waiting);
      await hold.unlock();
      expect(warnings).toHaveLength(1);
    });

    plain("a fork inside a scope waits for the scope's own hold", async () => {
      const client = hasty();
      const lock = client.getLock("a");
      await client.scope(async () => {
        await lock.lock();
        await lock.lock();
        expect(await failure(client.scope(() => lock.lock({ wait: 2_000 })))).toMatchObject({
          code: "WAIT_TIMEOUT",
        });
        await lock.unlock();
        await lock.unlock();
      });
      await until("a warning", () => warnings.length > 0);
      expect(ofCode("HOLDFAST_OWN_HOLD")).toHaveLength(1);
    });

    plain("siblings, strangers and other locks are no such calls", async () => {
      const client = hasty();
      const lock = client.getLock("a");
      const tasks = Array.from({ length: 3 }, async () => {
        const hold = await lock.lock();
        await new Promise((resolve) => setTimeout(resolve, 150));
        await hold.unlock();
      });
      await Promise.all(tasks);
      const begun = deferred();
      const end = deferred();
      const task = (async () => {
        await null;
        const hold = await lock.lock();
        begun.resolve();
        await end.promise;
        await hold.unlock();
      })();
      await begun.promise;
      const waiting = lock.lock({ wait: 200 });
      await failure(waiting);
      const own = await client.getLock("b").lock();
      await failure(lock.lock({ wait: 200 }));
      await own.unlock();
      // A hold that was given back belongs to nobody any more, so another client's hold causes no warning.
      const before = await client.getLock("c").lock();
      await before.unlock();
      const theirs = hasty().getLock("c");
      const stranger = await theirs.lock({ lease: 60_000 });
      await failure(client.getLock("c").lock({ wait: 200 }));
      await stranger.unlock();
      end.resolve();
      await task;
      expect(warnings).toEqual([]);
    });
  });
});

eachKind("what NOT_OWNER says", (test, kind) => {
  if (kind.members === 1) {
    test("that this client holds the lock by a bare lock()", async ({ lock, other }) => {
      const hold = await lock.lock();
      const error = await failure(lock.unlock());
      expect(error).toMatchObject({ code: "NOT_OWNER" });
      expect(error.message).toContain("This client holds it by a bare lock()");
      expect(error.message).toContain("hold.unlock()");
      expect(error.message).toContain("client.scope()");
      expect((await failure(other.unlock())).message).not.toContain("bare");
      await hold.unlock();
      expect((await failure(lock.unlock())).message).not.toContain("bare");
    });
  }

  test("inside a run, that the run gives its hold back", async ({ client, lock }) => {
    await lock.run(async () => {
      for (const unlock of [() => lock.unlock(), () => client.scope(() => lock.unlock())]) {
        const error = await failure(unlock());
        expect(error).toMatchObject({ code: "NOT_OWNER" });
        expect(error.message).toContain("A run() gives its hold back by itself");
      }
    });
  });

  test("in a scope that holds nothing, that there is nothing to unlock", async ({ client, lock }) => {
    const error = await client.scope(() => failure(lock.unlock()));
    expect(error.message).toContain("nothing to unlock");
  });
});
