/** Rights that are withdrawn while a client works: its errors name what is forbidden, and its holds are not stuck. */
import { describe, expect, test } from "vitest";
import { type Lock, LockClient } from "../../src/index.js";
import { failure, nextEvent } from "../contract/helpers.js";
import { type RedisServer, startRedis, UNHURRIED } from "../support/index.js";
import { failOnUnhandledRejections } from "./harness.js";

failOnUnhandledRejections();

const ALL = ["on", ">secret", "allkeys", "allchannels", "allcommands"];
const user = (server: RedisServer, ...rights: string[]) => server.call("ACL", "SETUSER", "shop", ...rights);
const connect = (server: RedisServer, watchdogTimeout: number): LockClient =>
  new LockClient(server.connect({ username: "shop", password: "secret" }), {
    ...UNHURRIED,
    watchdogTimeout,
  });

interface Withdrawn {
  readonly what: string;
  readonly rights: readonly string[];
  /** What its errors name. */
  readonly named?: RegExp;
  /** Whether, without the right, a hold can still be given back, and whether a new lock can be taken then. */
  readonly unlocks: boolean;
  readonly locks: boolean;
}

const WITHDRAWN: readonly Withdrawn[] = [
  { what: "to publish", rights: ["-publish"], unlocks: true, locks: true },
  { what: "to use the channel", rights: ["resetchannels"], unlocks: true, locks: true },
  {
    what: "to call a command of the scripts",
    rights: ["-hdel", "-del"],
    named: /'hdel'/,
    unlocks: false,
    locks: true,
  },
  { what: "to set a TTL", rights: ["-pexpire"], named: /'pexpire'/, unlocks: true, locks: false },
  {
    what: "to use the key",
    rights: ["resetkeys", "~else:*"],
    named: /"(held|other)"/,
    unlocks: false,
    locks: false,
  },
  { what: "to run scripts", rights: ["-eval", "-evalsha"], named: /'eval/, unlocks: false, locks: false },
];

/** Takes a lock and gives it back. */
const cycle = async (lock: Lock): Promise<void> => (await lock.lock()).unlock();

describe.concurrent.each(WITHDRAWN)(
  "a user that may no longer: $what [F44]",
  ({ rights, named, unlocks, locks }) => {
    test("is told what it may not do, or is not disturbed; with the right back all goes on", async () => {
      await using server = await startRedis();
      await user(server, ...ALL);
      await using client = connect(server, 3_000);
      const [held, other] = [client.getLock("held"), client.getLock("other")];
      const hold = await held.lock();
      await cycle(other);
      await user(server, ...rights);

      const refusal = { code: "UNSUPPORTED", message: expect.stringMatching(named ?? /./) };
      if (!locks) expect(await failure(cycle(other))).toMatchObject(refusal);
      if (unlocks) await hold.unlock();
      else expect(await failure(hold.unlock())).toMatchObject(refusal);
      expect(hold.isHeld).toBe(false);
      for (const name of ["held", "other"]) expect(await server.call("PTTL", name)).not.toBe(-1);

      await user(server, ...ALL);
      await cycle(other);
      // A hold that could not be given back is not renewed either, so it expires.
      await cycle(held);
    });
  },
);

test("a hold that may not be renewed any more is lost at its deadline, and says why [F44]", async () => {
  await using server = await startRedis();
  await user(server, ...ALL);
  await using client = connect(server, 1_500);
  const hold = await client.getLock("order").lock();
  const [suspended, lost] = [nextEvent(client, "suspended"), nextEvent(client, "lost")];
  await user(server, "-pexpire");
  expect(await suspended).toMatchObject({ lockName: "order", cause: { code: "UNSUPPORTED" } });
  expect(await lost).toMatchObject({ lockName: "order" });
  expect([hold.isHeld, hold.signal.aborted]).toEqual([false, true]);
  expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST" });
});

test("a hold that may be renewed is not lost with another one that may not [B244]", async () => {
  await using server = await startRedis();
  await user(server, ...ALL);
  await using client = connect(server, 1_500);
  const [mine, theirs] = [await client.getLock("mine:1").lock(), await client.getLock("theirs:1").lock()];
  const suspended: string[] = [];
  client.on("suspended", ({ lockName }) => void suspended.push(lockName));
  const lost = nextEvent(client, "lost");
  await user(server, "resetkeys", "~*mine:*");
  expect(await lost).toMatchObject({ lockName: "theirs:1" });
  expect([mine.isHeld, theirs.isHeld]).toEqual([true, false]);
  expect(suspended).toEqual(["theirs:1"]);
  await mine.unlock();
});
