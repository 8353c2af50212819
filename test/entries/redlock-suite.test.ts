/**
 * The cases of redlock 5's own tests and of its documentation, written anew: on one server, a cluster, three servers,
 * and three clusters. Redis holds another format here, so a test looks only at who has a key and for how long.
 */
import { createRequire } from "node:module";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  type ExecutionError,
  type Lock,
  Redlock,
  type RedlockClient,
  ResourceLockedError,
  type Settings,
} from "../../src/entries/redlock.js";
import { failure, isBuilt } from "../contract/helpers.js";
import { freshName } from "../faults/harness.js";
import {
  freePort,
  PATIENCE,
  type RedisServer,
  releasePort,
  STEADY,
  startCluster,
  startRedis,
  until,
} from "../support/index.js";
import { executionError, ONCE } from "./redlock-helpers.js";

/** One of the independent masters: a server, or a cluster, which knows the server of each key. */
interface Member extends AsyncDisposable {
  connect(): RedlockClient;
  masterFor(name: string): Promise<RedisServer>;
}

async function aServer(): Promise<Member> {
  const server = await startRedis();
  return {
    connect: () => server.connect(),
    masterFor: async () => server,
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** A node that has met no other node does not know its own address. */
const KNOWN = ["--cluster-announce-ip", "127.0.0.1"];

const aCluster = (masters: number) => (): Promise<Member> => startCluster({ masters, args: KNOWN });

/** The longest lease in those tests; three times as long is still allowed. */
const LONGEST = Math.floor(Number.MAX_SAFE_INTEGER / 10);
/** Few retries: redlock's own take three seconds; here they are one wait, in which any server answers. */
const BRIEF: Partial<Settings> = { retryCount: 2, retryDelay: 1_000, retryJitter: 50 };
/** With this threshold a lock is extended soon after it was taken; a process may then stall for seconds. */
const EXTENDED: Partial<Settings> = { automaticExtensionThreshold: STEADY - 200, retryCount: 100 };

const open: Redlock[] = [];

/** Members for the tests of a describe, and what they hold. */
function useMembers(count: number, start: () => Promise<Member>) {
  const members: Member[] = [];
  beforeAll(async () => {
    members.push(...(await Promise.all(Array.from({ length: count }, start))));
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((redlock) => redlock.quit()));
  });
  afterAll(async () => {
    await Promise.all(members.map((member) => member[Symbol.asyncDispose]()));
  });
  const onAll = <T>(name: string, ask: (server: RedisServer) => Promise<T>): Promise<T[]> =>
    Promise.all(members.map(async (member) => ask(await member.masterFor(name))));
  const keys = (name: string) => onAll(name, (server) => server.call("HKEYS", name));
  return {
    redlock(settings: Partial<Settings> = {}): Redlock {
      const redlock = new Redlock(
        members.map((member) => member.connect()),
        settings,
      );
      open.push(redlock);
      return redlock;
    },
    server: (i: number, name: string) => (members[i] as Member).masterFor(name),
    /** The holder on each member. A majority is enough for the call, so this waits until the other members follow. */
    async holders(name: string): Promise<string[]> {
      let all: string[][] = [];
      await until(`each member has ${name}`, async () => {
        all = (await keys(name)) as string[][];
        return all.every((each) => each.length > 0);
      });
      for (const each of all) expect(each).toHaveLength(1);
      return all.flat();
    },
    /** Each member comes to have the lock for the requested time, less the time that the test has taken. */
    async expectTtl(name: string, duration: number): Promise<void> {
      let ttls: number[] = [];
      await until(`each member keeps ${name} for ${duration} ms`, async () => {
        ttls = (await onAll(name, (server) => server.call("PTTL", name))).map(Number);
        return ttls.every((ttl) => ttl > duration - PATIENCE);
      });
      for (const ttl of ttls) expect(ttl).toBeLessThanOrEqual(duration);
    },
    async untilFree(name: string): Promise<void> {
      await until(`${name} is free`, async () => {
        const found = await onAll(name, (server) => server.call("EXISTS", name));
        return found.every((one) => Number(one) === 0);
      });
    },
  };
}

type Members = ReturnType<typeof useMembers>;

/** The tests that are the same for a single client and for several. */
function takenExtendedReleased(members: Members, count: number): void {
  test(`${count === 1 ? "a resource is" : "several resources are"} locked, extended and released`, async () => {
    const names = Array.from({ length: count }, freshName);
    let lock: Lock = await members.redlock().acquire(names, LONGEST);
    const holders = await Promise.all(names.map(members.holders));
    expect(holders[0]?.[0]).toBe(lock.value);
    for (const name of names) await members.expectTtl(name, LONGEST);
    lock = await lock.extend(3 * LONGEST);
    expect(holders[0]?.[0]).toBe(lock.value);
    expect(await Promise.all(names.map(members.holders))).toEqual(holders);
    for (const name of names) await members.expectTtl(name, 3 * LONGEST);
    await lock.release();
    for (const name of names) await members.untilFree(name);
  });
}

/** All votes of all attempts are against, because another lock holds the resource. */
async function expectLockedByAnother({ attempts }: ExecutionError): Promise<void> {
  expect(attempts.length).toBeGreaterThan(0);
  for (const { votesFor, votesAgainst } of await Promise.all(attempts)) {
    expect(votesFor.size).toBe(0);
    for (const vote of votesAgainst.values()) expect(vote).toBeInstanceOf(ResourceLockedError);
  }
}

describe.each([
  ["a server", aServer],
  ["a cluster", aCluster(3)],
])("on %s", (_, start) => {
  const members = useMembers(1, start);

  takenExtendedReleased(members, 1);
  takenExtendedReleased(members, 2);

  test("a duration that is no whole number is refused, in redlock's words", async () => {
    const redlock = members.redlock();
    const { message } = await failure(redlock.acquire([freshName()], Number.MAX_SAFE_INTEGER / 10));
    expect(message).toBe("Duration must be an integer value in milliseconds.");
  });

  test("a lock that nobody extends expires, and its resource can be locked again", async () => {
    const redlock = members.redlock({ retryCount: -1 });
    const name = freshName();
    const first = await redlock.acquire([name], 200);
    const second = await redlock.acquire([name], LONGEST);
    expect(first.expiration).toBeLessThan(Date.now());
    expect(second.value).not.toBe(first.value);
    expect(await members.holders(name)).toEqual([second.value]);
    await second.release();
    await members.untilFree(name);
  });

  test("a resource that is locked cannot be locked, by the same Redlock neither", async () => {
    const redlock = members.redlock(BRIEF);
    const name = freshName();
    const lock = await redlock.acquire([name], LONGEST);
    await expectLockedByAnother(await executionError(redlock.acquire([name], 50_000)));
    expect(await members.holders(name)).toEqual([lock.value]);
    await members.expectTtl(name, LONGEST);
    await lock.release();
    await members.untilFree(name);
  });

  test("of resources that overlap none is locked twice, and none is left behind", async () => {
    const redlock = members.redlock(BRIEF);
    const [a, b, c] = [freshName(), freshName(), freshName()];
    const lock = await redlock.acquire([a, b], LONGEST);
    const before = [await members.holders(a), await members.holders(b)];
    await executionError(redlock.acquire([b, c], LONGEST));
    expect([await members.holders(a), await members.holders(b)]).toEqual(before);
    await members.untilFree(c);
    await lock.release();
    for (const name of [a, b]) await members.untilFree(name);
  });

  test("using: one lock all the time, extended while its routine runs, released behind it", async () => {
    const redlock = members.redlock();
    const name = freshName();
    const ttl = async () => Number(await (await members.server(0, name)).call("PTTL", name));
    const value = await redlock.using([name], STEADY, EXTENDED, async (signal) => {
      const holders = await members.holders(name);
      let last = await ttl();
      await until("it is extended", async () => {
        const [before, now] = [last, await ttl()];
        last = now;
        return now > before;
      });
      expect([signal.aborted, signal.error]).toEqual([false, undefined]);
      expect(await members.holders(name)).toEqual(holders);
      return holders[0];
    });
    expect(value).toMatch(/:\d+$/);
    await members.untilFree(name);
  });

  test("using: two routines of one resource run one after the other, each by a lock of its own", async () => {
    const redlock = members.redlock();
    const name = freshName();
    let inside = 0;
    const visit = () =>
      redlock.using([name], STEADY, { ...EXTENDED, retryCount: -1 }, async (signal) => {
        expect(++inside).toBe(1);
        const [holder] = await members.holders(name);
        expect(signal.aborted).toBe(false);
        inside--;
        return holder;
      });
    const [one, other] = await Promise.all([visit(), visit()]);
    expect(one).not.toBe(other);
    await members.untilFree(name);
  });
});

describe.each([
  ["three servers", aServer],
  ["three clusters", aCluster(1)],
])("on %s", (_, start) => {
  const members = useMembers(3, start);

  takenExtendedReleased(members, 1);

  test("other data on one of them is no hindrance, and stays", async () => {
    const name = freshName();
    const third = await members.server(2, name);
    await third.call("SET", name, "other");
    const expectThere = async (duration: number) => {
      for (const i of [0, 1]) {
        const ttl = Number(await (await members.server(i, name)).call("PTTL", name));
        expect(ttl).toBeGreaterThan(duration - PATIENCE);
      }
      expect([await third.call("GET", name), await third.call("PTTL", name)]).toEqual(["other", -1]);
    };
    let lock = await members.redlock().acquire([name], LONGEST);
    await expectThere(LONGEST);
    lock = await lock.extend(3 * LONGEST);
    await expectThere(3 * LONGEST);
    await lock.release();
    for (const i of [0, 1]) {
      const server = await members.server(i, name);
      await until("it is free", async () => (await server.call("EXISTS", name)) === 0);
    }
    expect(await third.call("GET", name)).toBe("other");
  });

  test("other data on two of them: the call fails, and nothing of it is left on the first", async () => {
    const name = freshName();
    const [first, second, third] = [
      await members.server(0, name),
      await members.server(1, name),
      await members.server(2, name),
    ];
    await second.call("SET", name, "other 1");
    await third.call("SET", name, "other 2");
    const error = await executionError(members.redlock(BRIEF).acquire([name], LONGEST));
    for (const { votesFor, votesAgainst, quorumSize } of await Promise.all(error.attempts)) {
      expect(votesFor.size).toBeLessThan(quorumSize);
      expect(votesAgainst.size).toBeGreaterThanOrEqual(quorumSize);
    }
    await until("nothing is left", async () => (await first.call("EXISTS", name)) === 0);
    expect([await second.call("GET", name), await third.call("GET", name)]).toEqual(["other 1", "other 2"]);
  });

  test("the examples of its documentation: settings, using, acquire and extend, errors, one try", async () => {
    const redlock = members.redlock({
      driftFactor: 0.01,
      retryCount: 10,
      retryDelay: 200,
      retryJitter: 200,
      automaticExtensionThreshold: 500,
    });
    const [foo, bar] = [freshName(), freshName()];
    const logged: unknown[] = [];
    redlock.on("error", (error) => {
      if (!(error instanceof ResourceLockedError)) logged.push(error);
    });
    const done = await redlock.using([foo, bar], 50_000, async (signal) => {
      await members.holders(foo);
      if (signal.aborted) throw signal.error;
      await members.holders(bar);
      return "done";
    });
    expect(done).toBe("done");
    let lock = await redlock.acquire([foo], 50_000);
    await members.holders(foo);
    try {
      lock = await lock.extend(LONGEST);
      // To ask whether a resource is locked, a program makes one try, which fails.
      const refusal = await executionError(redlock.acquire([foo], 50_000, ONCE));
      await expectLockedByAnother(refusal);
      expect((await lock.attempts[0])?.votesFor.size).toBe(3);
    } finally {
      await lock.release();
    }
    expect(logged).toEqual([]);
  });
});

test("a client that cannot connect: the call fails, and each attempt says by what", async () => {
  const port = await freePort();
  const redis = new Redis({
    host: "127.0.0.1",
    port,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    retryStrategy: () => null,
    reconnectOnError: () => false,
  });
  redis.on("error", () => {});
  const redlock = new Redlock([redis], BRIEF);
  const { attempts } = await executionError(redlock.acquire([freshName()], LONGEST));
  expect(attempts.length).toBeGreaterThan(0);
  for (const { votesFor, votesAgainst } of await Promise.all(attempts)) {
    expect(votesFor.size).toBe(0);
    for (const vote of votesAgainst.values()) expect(vote).toMatchObject({ code: "UNAVAILABLE" });
  }
  await redlock.quit();
  releasePort(port);
});

test.skipIf(!isBuilt)("in CommonJS the class is the default export, too", () => {
  const required = createRequire(import.meta.url)("../../dist/redlock.cjs") as Record<string, unknown>;
  expect(required.default).toBe(required.Redlock);
  expect(required.ExecutionError).toBeTypeOf("function");
});
