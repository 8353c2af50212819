/** Contract section 5: what each call of a semaphore or latch gives, sends and costs, and how it is refused. */
import { expect } from "vitest";
import { failure, NAME, watch } from "../../support/place/index.js";
import { CALLS, countsOf, PLAIN, prepare, SHORT } from "./operations.js";
import { LEASES, SETTINGS, test } from "./place.js";

for (const [name, operation] of CALLS) {
  test(`${name} takes one command, and changes and announces no more than it says [§5 semaphore]`, async (place) => {
    const { server, heard } = place;
    await place.a.client.getCountDownLatch("first").countDown();
    const id = await prepare(place, operation);
    const before = server.ran.length;
    expect(await operation.call(place, id)).toEqual(operation.does.gives);
    expect(server.ran).toHaveLength(before + 1);
    expect(heard).toEqual(operation.does.heard ?? []);
    expect(await place.counts()).toEqual(countsOf(operation.does.to));
  });
}

test("fifty that come at once take one command each, and all of them are counted [§5 semaphore]", async (place) => {
  await place.semaphore().trySetPermits(50);
  place.server.took();
  await place.soon(Promise.all(Array.from({ length: 50 }, (_, i) => place.semaphore(i % 2).acquire())));
  expect(place.server.took()).toHaveLength(50);
  expect(await place.counts()).toEqual(["0", 0]);
});

test("numbers are counted exactly as far as a number tells them [§5 semaphore]", async ({ semaphore }) => {
  const many = 2 ** 52;
  await semaphore().trySetPermits(many);
  await semaphore().acquire(many - 1);
  expect(await semaphore().availablePermits()).toBe(1);
  await semaphore().release(many - 2);
  expect(await semaphore().drainPermits()).toBe(many - 1);
});

test("permits that Redis cannot count any more are refused, and nothing is given back or lost [§6 wrong-data] [B108]", async ({
  semaphore,
  call,
  counts,
}) => {
  const most = 2n ** 63n - 1n;
  await call("SET", NAME, String(most));
  const refused = {
    code: "WRONG_DATA",
    lockName: NAME,
    message: expect.stringContaining("would overflow"),
  };
  expect(await failure(semaphore().release())).toMatchObject(refused);
  expect(await failure(semaphore().addPermits(7))).toMatchObject(refused);
  expect(await counts()).toEqual([String(most), 0]);
  await semaphore().acquire(2_000);
  await semaphore().release(7);
  expect(await counts()).toEqual([String(most - 1_993n), 0]);
});

test.with({ prefix: "app" })(
  "a prefix is before the names of keys and channels, and not of objects [§1 prefix]",
  async (place) => {
    const { server, call, semaphore, latch } = place;
    const heard: string[] = [];
    for (const channel of ["redisson_sc:{app:job}", "redisson_countdownlatch__channel__{app:job}"])
      server.subscribe("publish", channel, (_, message) => void heard.push(message));
    await semaphore().release();
    expect([semaphore().name, await call("GET", "app:job")]).toEqual([NAME, "1"]);
    await call("DEL", "app:job");
    await latch().trySetCount(1);
    expect([latch().name, await call("GET", "app:job"), heard]).toEqual([NAME, "1", ["1", "1"]]);
    await call("DEL", "app:job");
  },
);

test.with({ replicas: 1 })(
  "a grant that too few replicas acknowledge is given back, and a refusal needs none [§6 codes]",
  async (place) => {
    const { server, semaphore, permits, call, counts } = place;
    server.instead = ({ name }) => (name === "WAIT" ? 0 : undefined);
    await call("SET", NAME, 5);
    for (const taking of [
      () => semaphore().acquire(2),
      () => semaphore().tryAcquire(2),
      () => semaphore().drainPermits(),
      () => semaphore().run(() => {}),
      () => permits().acquire(),
      () => permits().tryAcquire(0, 60_000),
    ])
      expect(await failure(taking())).toMatchObject({
        code: "REPLICAS",
        acknowledged: 0,
        required: 1,
        lockName: NAME,
      });
    expect([await semaphore().tryAcquire(9), await counts()]).toEqual([false, ["5", 0]]);
  },
);

for (const [calls, ms, limit] of [
  [PLAIN, SETTINGS.commandTimeout, "commandTimeout"],
  [SHORT, 200, "its wait, if that is shorter"],
] as const) {
  for (const [name, call] of calls) {
    test(`${name} without an answer rejects UNAVAILABLE after ${limit} [§2 unavailable]`, async (place) => {
      await place.latch().countDown();
      await place.a.cut();
      const calling = watch(call(place));
      await place.pass(ms - 1);
      expect(calling.outcome).toBe("pending");
      await place.pass(1);
      expect(calling.error).toMatchObject({ code: "UNAVAILABLE", lockName: NAME });
      await place.a.mend();
      await place.pass(1_000);
    });
  }
}

const WRONG = { code: "WRONG_DATA", lockName: NAME };

/** What writes such a value at a key, and what reads it. */
const DATA = [
  ["SET", "paid", "GET"],
  ["RPUSH", "paid", "LRANGE", "0", "-1"],
] as const;
/** Calls that look only at the permits in use, and those that do not look at them. */
const BY_ID = /^permits.(release|tryRelease|updateLeaseTime|acquiredPermits)/;
const OF_NUMBER = /^(semaphore|latch|permits.(trySetPermits|addPermits))/;

for (const [name, call] of [...PLAIN, ...SHORT]) {
  const keys = [...(BY_ID.test(name) ? [] : [NAME]), ...(OF_NUMBER.test(name) ? [] : [LEASES])];
  test(`${name} of other data rejects WRONG_DATA at once, and the data stays as it is [§6 wrong-data]`, async (place) => {
    const { server, soon, heard } = place;
    for (const key of keys) {
      for (const [write, value, read, ...args] of DATA) {
        server.execute([write, key, value]);
        const error = await failure(soon(call(place)));
        expect(error, write).toMatchObject(WRONG);
        expect(error.message).toContain(NAME);
        expect(String(server.execute([read, key, ...args]))).toBe(value);
        server.delete(key);
      }
      server.execute(["SET", NAME, "5"]);
    }
    expect(heard).toEqual([]);
  });
}

test("data that is put there ends those who wait, and is a loss of kept permits [§6 wrong-data]", async (place) => {
  const { a, call, permits, semaphore, settle, pass, server } = place;
  await call("SET", NAME, 0);
  const calls = [watch(semaphore().acquire()), watch(permits(1).acquire())];
  await settle();
  await call("DEL", NAME);
  await call("RPUSH", NAME, "theirs");
  await call("PUBLISH", "redisson_sc:{job}", "1");
  await settle();
  for (const { error } of calls) expect(error).toMatchObject(WRONG);
  expect(await call("LRANGE", NAME, "0", "-1")).toEqual(["theirs"]);
  await call("DEL", NAME);
  await permits().trySetPermits(2);
  const other = a.client.getPermitExpirableSemaphore("other");
  await other.trySetPermits(1);
  const [lost, kept] = [await permits().acquire(), await other.acquire()];
  a.listen("lost");
  await call("SET", LEASES, "theirs");
  await pass(60_000);
  expect(a.heard("lost")).toMatchObject([{ permitId: lost, lockName: NAME }]);
  expect([await call("GET", LEASES), await other.tryRelease(kept)]).toEqual(["theirs", true]);
  server.delete("other");
});
