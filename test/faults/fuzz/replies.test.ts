/**
 * The library's commands get random answers. Each call settles within its time limit, with a value or with a LockError
 * that has a code. No promise rejects without a handler.
 */
import fc from "fast-check";
import { type Redis, ReplyError } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { isLockError, type Lock, LockClient } from "../../../src/index.js";
import { forFile, startRedis } from "../../support/index.js";
import { SINGLE } from "../../support/place/kinds.js";
import { failOnUnhandledRejections } from "../harness.js";
import { AGAIN, RUNS, SEED } from "./runs.js";

const AT_ONCE = 250;

failOnUnhandledRejections();
const server = await forFile(startRedis());

const CODES = [
  "ERR",
  "NOSCRIPT",
  "WRONGTYPE",
  "NOPERM",
  "OOM",
  "BUSY",
  "MOVED 1 127.0.0.1:1",
  "CROSSSLOT",
  "NOAUTH",
  "",
];
const scalar = fc.oneof(
  fc.constantFrom(null, undefined, "", "OK", "0", "1", "-1", "nan", "inf", "1e400", true, false),
  fc.integer({ min: -3, max: 3 }),
  fc.double(),
  fc.maxSafeInteger(),
  fc.bigInt(),
  fc.string(),
  fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
);
const failure = fc
  .tuple(fc.constantFrom(...CODES), fc.string())
  .map(([code, text]) => new ReplyError(`${code} ${text}`));
const reply = fc.oneof(
  scalar,
  fc.array(fc.oneof(scalar, fc.array(scalar, { maxLength: 4 })), { maxLength: 6 }),
  failure,
);

const call = <T>(make: (client: LockClient, name: string) => T, act: (it: T) => Promise<unknown>) => {
  return (client: LockClient, name: string) => act(make(client, name));
};

const ofLocks = SINGLE.map((kind) => (client: LockClient, name: string) => kind.make([client], name)).flatMap(
  (make) => [
    call(make, (lock: Lock) => lock.tryLock()),
    call(make, (lock: Lock) => lock.tryLock(0, 1_000)),
    call(make, async (lock: Lock) => (await lock.tryLock())?.unlock()),
    call(make, async (lock: Lock) => (await lock.tryLock())?.extend(5_000)),
    call(make, (lock: Lock) => lock.isLocked()),
    call(make, (lock: Lock) => lock.remainTimeToLive()),
    call(make, (lock: Lock) => lock.forceUnlock()),
  ],
);
const semaphore = (client: LockClient, name: string) => client.getSemaphore(name);
const permits = (client: LockClient, name: string) => client.getPermitExpirableSemaphore(name);
const latch = (client: LockClient, name: string) => client.getCountDownLatch(name);
const CALLS: readonly ((client: LockClient, name: string) => Promise<unknown>)[] = [
  ...ofLocks,
  call(semaphore, (it) => it.tryAcquire()),
  call(semaphore, (it) => it.availablePermits()),
  call(semaphore, (it) => it.drainPermits()),
  call(permits, (it) => it.tryAcquire(0, 1_000)),
  call(permits, (it) => it.acquiredPermits()),
  call(latch, (it) => it.getCount()),
  call(latch, (it) => it.await(0)),
  (client, name) => client.inspect(name),
];

/**
 * A connection to make others from whose scripts get these answers, one after the other. With
 * `again` false the server's own come after them.
 */
function answering(replies: readonly unknown[], again = true): Redis {
  const redis = server.connect({ lazyConnect: true });
  const duplicate = redis.duplicate.bind(redis);
  let next = 0;
  redis.duplicate = (...options) => {
    const own = duplicate(...options);
    for (const command of ["evalsha", "eval"] as const) {
      const send = own[command].bind(own) as (...args: unknown[]) => Promise<unknown>;
      const answer = async (...args: unknown[]) => {
        const isOver = !again && next >= replies.length;
        const given = isOver ? GENUINE : replies[next++ % replies.length];
        if (given instanceof Error) throw given;
        return given === GENUINE ? send(...args) : given;
      };
      own[command] = answer as never;
    }
    return own;
  };
  return redis;
}

/** Stands for what the server answers. */
const GENUINE = Symbol("the server's own");

test(`${RUNS} answers end no call otherwise than by a value or a LockError [B11]`, {
  timeout: 600_000,
}, async () => {
  const replies = fc.sample(reply, { numRuns: RUNS, seed: SEED });
  const strange: string[] = [];
  let settled = 0;
  for (let from = 0; from < RUNS; from += AT_ONCE) {
    const client = new LockClient(answering(replies.slice(from, from + AT_ONCE)), { commandTimeout: 60 });
    const calls = Array.from({ length: AT_ONCE }, (_, i) => CALLS[(from + i) % CALLS.length]);
    await Promise.all(
      calls.map(async (ask, i) => {
        try {
          await ask?.(client, `name ${from + i}`);
        } catch (error) {
          if (!isLockError(error))
            strange.push(`${(from + i) % CALLS.length}: ${String((error as Error)?.stack ?? error)}`);
        }
        settled++;
      }),
    );
    await client.close({ timeout: 0 });
  }
  expect([...new Set(strange)].slice(0, 5), AGAIN).toEqual([]);
  expect(settled).toBeGreaterThanOrEqual(RUNS);
});

test.each(["QUEUED", "", null, true, 0.5, "1 0"])(
  "a reply of %j, which no script gives, is UNAVAILABLE and no answer, and what must arrive is sent again [B277]",
  async (given) => {
    const client = new LockClient(answering([given]), { commandTimeout: 500 });
    onTestFinished(() => client.close({ timeout: 0 }));
    const outcomes = await Promise.allSettled([
      client.getCountDownLatch("strange").await(500),
      ...CALLS.map((ask) => ask(client, "strange")),
    ]);
    const message = "the reply is not one that this script gives";
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { code: "UNAVAILABLE", cause: { message } } });
    await using other = new LockClient(answering([GENUINE, given, given], false), { commandTimeout: 500 });
    const lock = other.getLock(`kept ${given}`);
    await (await lock.lock()).unlock();
    expect(await lock.isLocked()).toBe(false);
  },
);
