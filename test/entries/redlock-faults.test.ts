/** The interface of redlock: routines that outlast their locks, and masters that die. */
import { describe, expect, onTestFinished, test } from "vitest";
import { Redlock, type RedlockAbortSignal } from "../../src/entries/redlock.js";
import { isLockError } from "../../src/index.js";
import { freshName, script } from "../faults/harness.js";
import { useMasters } from "../groups/red-helpers.js";
import { type FaultProxy, forTest, STEADY, startCluster, startProxy, until } from "../support/index.js";
import {
  countHeld,
  executionError,
  LOCKED,
  LONG,
  newRedlock,
  ONCE,
  PATIENT,
  votesAgainst,
} from "./redlock-helpers.js";

const masters = await useMasters(5);

/**
 * With this threshold a lock is extended a tenth of a second after it was taken; a process may then stall for seconds.
 */
const SOON = { automaticExtensionThreshold: STEADY - 200, retryCount: 100 };

function aborted(signal: RedlockAbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.error);
    else signal.addEventListener("abort", () => resolve(signal.error), { once: true });
  });
}

describe.each([{ count: 1 }, { count: 3 }, { count: 5 }])("using, on $count masters", ({ count }) => {
  const quorum = Math.floor(count / 2) + 1;
  const servers = () => masters.slice(0, count);
  /** The time to live that at least a quorum has. */
  const ttl = async (name: string) => {
    const all = await Promise.all(servers().map((server) => server.call("PTTL", name)));
    return all.map(Number).sort((a, b) => b - a)[quorum - 1] as number;
  };

  test("the lock is held and extended while the routine runs, and is free when it has ended", async () => {
    const [redlock, other] = [newRedlock(servers()), newRedlock(servers(), ONCE)];
    const name = freshName();
    const result = await redlock.using([name], STEADY, SOON, async (signal) => {
      for (let extensions = 0, last = await ttl(name); extensions < 2; ) {
        const now = await ttl(name);
        if (now > last) extensions++;
        last = now;
      }
      await executionError(other.acquire([name], LONG));
      expect(signal.aborted).toBe(false);
      return "what the routine returns";
    });
    expect(result).toBe("what the routine returns");
    await until("it is free", async () => (await countHeld(servers(), name)) === 0);
  });

  test("the signal aborts when the lock is gone at its extension, and the call rejects", async () => {
    const redlock = newRedlock(servers());
    const name = freshName();
    let told: unknown;
    const error = await executionError(
      redlock.using([name], STEADY, SOON, async (signal) => {
        await Promise.all(servers().map((server) => server.call("DEL", name)));
        told = await aborted(signal);
        expect(signal.reason).toBe(told);
        return "in vain";
      }),
    );
    expect(error).toBe(told);
    expect(isLockError(error.cause, "LOCK_LOST")).toBe(true);
  });

  test("the signal aborts when no quorum answers until the lock expires", async () => {
    const redlock = newRedlock(servers());
    const error = await executionError(
      redlock.using([freshName()], 3_000, { ...SOON, automaticExtensionThreshold: 2_500 }, async (signal) => {
        await Promise.all(
          servers()
            .slice(0, quorum)
            .map((server) => server.kill()),
        );
        await aborted(signal);
      }),
    );
    expect(isLockError(error.cause)).toBe(true);
  });

  test("quit aborts the routine that runs, and its call rejects", async () => {
    const redlock = newRedlock(servers());
    const error = await executionError(
      redlock.using([freshName()], LONG, async (signal) => {
        await redlock.quit();
        await aborted(signal);
      }),
    );
    expect(isLockError(error.cause, "LOCK_LOST")).toBe(true);
  });

  test("what the routine throws comes before all else, and the lock is given back", async () => {
    const redlock = newRedlock(servers());
    const name = freshName();
    const routine = async (signal: RedlockAbortSignal) => {
      await Promise.all(servers().map((server) => server.call("DEL", name)));
      throw await aborted(signal).then(() => new Error("the routine's"));
    };
    await expect(redlock.using([name], STEADY, SOON, routine)).rejects.toThrow("the routine's");
    const failing = redlock.using([name], LONG, () => {
      throw new Error("at once");
    });
    await expect(failing).rejects.toThrow("at once");
    await until("it is free", async () => (await countHeld(servers(), name)) === 0);
  });
});

describe.each([{ count: 3 }, { count: 5 }])("with masters dead, of $count", ({ count }) => {
  const minority = Math.floor((count - 1) / 2);
  const servers = () => masters.slice(0, count);

  test("a minority is missed by nobody: locks are taken, extended, waited for and released", async () => {
    const [redlock, other] = [newRedlock(servers()), newRedlock(servers(), PATIENT)];
    const name = freshName();
    const heard: unknown[] = [];
    redlock.on("error", (error) => heard.push(error));
    await (await redlock.acquire([name], LONG)).release();
    const dead = servers().slice(0, minority);
    await Promise.all(dead.map((server) => server.kill()));
    let lock = await redlock.acquire([name], LONG);
    const [stats] = await Promise.all(lock.attempts);
    expect([stats?.votesFor.size, stats?.votesAgainst.size]).toEqual([count - minority, minority]);
    expect(heard.length).toBeGreaterThanOrEqual(minority);
    lock = await lock.extend(LONG);
    const next = other.acquire([name], LONG);
    await lock.release();
    await (await next).release();
  });

  test("a master that dies while its lock is held is missed by nobody either", async () => {
    const redlock = newRedlock(servers());
    const lock = await redlock.acquire([freshName()], LONG);
    await servers()[0]?.kill();
    await (await lock.extend(LONG)).release();
  });

  test("without a quorum each attempt tells what each client failed with", async () => {
    const redlock = newRedlock(servers(), { retryCount: 2, retryDelay: 50, retryJitter: 10 });
    const name = freshName();
    await (await redlock.acquire([name], LONG, PATIENT)).release();
    // A master outside the majority may still have the lock, and would correctly vote against.
    await until("all masters have given it back", async () => (await countHeld(servers(), name)) === 0);
    await Promise.all(
      servers()
        .slice(0, minority + 1)
        .map((server) => server.kill()),
    );
    const error = await executionError(redlock.acquire([name], LONG));
    expect(isLockError(error.cause)).toBe(true);
    expect(error.attempts.length).toBeGreaterThanOrEqual(1);
    for (const { votesFor, votesAgainst } of await Promise.all(error.attempts)) {
      expect(votesFor.size).toBeLessThanOrEqual(minority);
      expect(votesFor.size + votesAgainst.size).toBe(count);
    }
  });

  test("with retryCount -1 a call outlasts the outage of a quorum", async () => {
    const redlock = newRedlock(servers());
    const name = freshName();
    await (await redlock.acquire([name], LONG)).release();
    const dead = servers().slice(0, minority + 1);
    await Promise.all(dead.map((server) => server.kill()));
    const acquired = redlock.acquire([name], LONG, { retryCount: -1, retryDelay: 20, retryJitter: 5 });
    // If a later call has failed, the first attempt of this one has failed, too.
    await executionError(redlock.acquire([name], LONG, ONCE));
    await Promise.all(dead.map((server) => server.restart()));
    const lock = await acquired;
    expect(lock.attempts.length).toBeGreaterThan(1);
    expect((await votesAgainst(lock))[0]?.length).toBeGreaterThan(minority);
    await lock.release();
  });
});

describe.each([{ count: 1 }, { count: 2 }, { count: 3 }])(
  "on $count masters that take longer to answer than a call may wait",
  ({ count }) => {
    /** Wait for 10 ms at most. */
    const SHORT = { retryCount: 1, retryDelay: 10, retryJitter: 0 };
    const DELAY = 200;
    const servers = () => masters.slice(0, count);

    async function startBehindProxies() {
      const proxies = await Promise.all(servers().map(async (server) => forTest(await startProxy(server))));
      const redlock = new Redlock(proxies.map((proxy) => proxy.connect()));
      onTestFinished(() => redlock.quit());
      // By this each connection is made, and each master knows the scripts.
      await (await redlock.acquire([freshName()], LONG, PATIENT)).release();
      const delay = (proxy: FaultProxy) => {
        proxy.clear();
        proxy.delayReplies(DELAY);
      };
      proxies.forEach(delay);
      return { proxies, redlock };
    }

    test.each([1, 2])("%s free resources are locked at the first attempt [B178]", async (many) => {
      const { redlock } = await startBehindProxies();
      const names = Array.from({ length: many }, freshName);
      const lock = await redlock.acquire(names, LONG, SHORT);
      expect(lock.attempts).toHaveLength(1);
      await redlock.release(lock, PATIENT);
    });

    // In the first case the time is over at the first answer, in the second before the next one.
    test.each([1, 1.5])(
      "one that another has is refused after %s answers, and not for want of one [B178]",
      async (answers) => {
        const { proxies, redlock } = await startBehindProxies();
        const name = freshName();
        const lock = await newRedlock(servers()).acquire([name], LONG);
        const error = await executionError(
          redlock.acquire([name], LONG, { ...SHORT, retryDelay: answers * DELAY }),
        );
        expect(error.cause).toBeUndefined();
        expect(await votesAgainst(error)).toEqual([Array(count).fill(LOCKED)]);
        for (const proxy of proxies) proxy.clear();
        await executionError(redlock.acquire([name], LONG, ONCE));
        expect(Math.max(...proxies.map((proxy) => proxy.count(script("acquire"))))).toBe(1);
        await lock.release();
      },
    );
  },
);

test("on a cluster the resources of a call may lie in different slots", async () => {
  await using cluster = await startCluster();
  const redlock = new Redlock([cluster.connect()]);
  const other = new Redlock([cluster.connect()], ONCE);
  const names = ["a", "b", "c", "d"];
  const lock = await redlock.acquire(names, LONG);
  await executionError(other.acquire(["c"], LONG));
  await (await lock.extend(LONG)).release();
  await (await other.acquire(["c"], LONG)).release();
  await Promise.all([redlock.quit(), other.quit()]);
});

test("two clients of one server are no two masters", async () => {
  const [server] = masters;
  const one = server as NonNullable<typeof server>;
  const redlock = newRedlock([one, one, one]);
  const error = await executionError(redlock.acquire([freshName()], LONG));
  expect(isLockError(error.cause, "UNSUPPORTED")).toBe(true);
});

test("a release that no quorum confirms says so, and may be called again", async () => {
  const redlock = newRedlock(masters.slice(0, 1), { retryCount: 0 });
  const [server] = masters;
  const lock = await redlock.acquire([freshName()], LONG);
  server?.pause();
  const error = await executionError(lock.release());
  expect(isLockError(error.cause, "UNAVAILABLE")).toBe(true);
  server?.resume();
  await until("it is released", () =>
    lock.release().then(
      () => true,
      () => false,
    ),
  );
});
