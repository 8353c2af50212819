/** A RedLock whose masters are really killed, stopped or restarted. What each moment of that means is shown in virtual time. */
import { afterEach, expect, test } from "vitest";
import {
  type FencedHold,
  LockClient,
  type LockClientOptions,
  type MultiHold,
  RedLock,
} from "../../../src/index.js";
import { Resource } from "../../faults/not-guaranteed/resource.js";
import {
  forFile,
  forTest,
  PATIENCE,
  type RedisServer,
  redisCall,
  startProxy,
  startRedis,
  until,
} from "../../support/index.js";
import { failure } from "../../support/outcome.js";

const LEASE = 600_000;
const IMPATIENT = { commandTimeout: 3_000 };

const start = (args: readonly string[] = []) =>
  Promise.all([0, 1, 2].map(() => startRedis({ args }).then(forFile)));
const forgetful = await start();
const faithful = await start(["--appendonly", "yes", "--appendfsync", "always"]);

afterEach(async () => {
  for (const server of [...forgetful, ...faithful]) {
    server.resume();
    await redisCall(server, ["PING"], 2_000).catch(() => server.restart());
  }
});

let names = 0;
const freshName = () => `away-${++names}`;

/** A RedLock by clients of its own. Its first call is over. */
async function redOf(
  servers: readonly Pick<RedisServer, "connect">[],
  name: string,
  options: LockClientOptions = IMPATIENT,
): Promise<RedLock> {
  const clients = servers.map((server) => forTest(new LockClient(server.connect(), options)));
  const red = new RedLock(...clients.map((client) => client.getFencedLock(name)));
  await (await taken(red, 1_000)).unlock();
  return red;
}

/** Takes the lock on as many masters, at last: a call may come before a client has noticed what has become of its master. */
function taken(red: RedLock, lease?: number, on = 2): Promise<MultiHold> {
  const take = async () => {
    const hold = await red.tryLock(0, lease);
    await until("all have granted it", () => (hold?.members.length ?? 0) >= on, { timeout: 1_000 }).catch(
      () => hold?.unlock(),
    );
    return hold?.isHeld && hold;
  };
  return until("it is taken", take, { timeout: PATIENCE }) as Promise<MultiHold>;
}

test("with one of three masters killed it is kept, given back and taken, and with two QUORUM [§4 red-kept] [F39]", async () => {
  const [, two, three] = forgetful as [RedisServer, RedisServer, RedisServer];
  const red = await redOf(forgetful, freshName(), { watchdogTimeout: 9_000, commandTimeout: 3_000 });
  const hold = await taken(red, undefined, 3);
  await two.kill();
  await until("the member there is lost", () => !hold.members[1]?.isHeld);
  expect([hold.isHeld, hold.signal.aborted]).toEqual([true, false]);
  await hold.unlock();
  const next = await taken(red, LEASE);
  expect(next.members).toHaveLength(2);
  await next.unlock();
  await three.kill();
  expect(await failure(red.tryLock(0, LEASE))).toMatchObject({ code: "QUORUM" });
  expect(await failure(red.isLocked())).toMatchObject({ code: "QUORUM" });
  for (const server of [two, three]) await server.restart();
  await (await taken(red, LEASE, 3)).unlock();
});

/** A hold on the first two of three masters, of which the third is stopped, and the same lock by other clients. */
async function takenByTwo(servers: readonly RedisServer[], lease: number) {
  const name = freshName();
  const [one, two] = [await redOf(servers, name), await redOf(servers, name)];
  servers[2]?.pause();
  return { first: await taken(one, lease), two };
}

test("a master that restarts with all its data lets nobody else in [§4 red] [F40]", async () => {
  const { first, two } = await takenByTwo(faithful, LEASE);
  await faithful[1]?.restart();
  const second = await until("a majority answers", async () => [await two.tryLock(0, LEASE)]);
  expect(second).toEqual([null]);
  expect(first.isHeld).toBe(true);
  faithful[2]?.resume();
  await first.unlock();
});

test("a master that comes back empty only after the lease lets nobody else in before [§4 red] [F40]", async () => {
  const { first, two } = await takenByTwo(forgetful, 8_000);
  await forgetful[1]?.kill();
  await until("a majority is away", () => failure(two.tryLock(0, LEASE)));
  await until("the first one's lease is over", () => !first.isHeld);
  await forgetful[1]?.restart();
  const second = await taken(two, LEASE);
  expect(second.isHeld).toBe(true);
  expect(await failure(first.unlock())).toMatchObject({ code: "LOCK_LOST" });
  forgetful[2]?.resume();
  await second.unlock();
});

test("a master that comes back empty within the lease votes again: two hold the lock. The first is told by its next command, and a fence refuses its write [F40]", async () => {
  const [zero, one, two] = forgetful as [RedisServer, RedisServer, RedisServer];
  await using away = await startProxy(two);
  away.refuse();
  const name = freshName();
  const [ours, theirs] = [await redOf([zero, one, away], name), await redOf(forgetful, name)];
  const first = await taken(ours, LEASE);
  await one.restart();
  const second = await taken(theirs, LEASE);
  expect([first.isHeld, second.isHeld]).toEqual([true, true]);

  const resource = new Resource();
  const [first0, first1] = first.members as FencedHold[];
  const [second1, second2] = second.members as FencedHold[];
  expect(resource.write("first", first0, first1)).toBe(true);
  expect(resource.write("second", undefined, second1, second2)).toBe(true);
  expect(resource.write("first, late", first0, first1)).toBe(false);
  expect([resource.unfenced, resource.fenced]).toEqual(["first, late", "second"]);
  expect(await failure(first.unlock())).toMatchObject({ code: "LOCK_LOST" });
  expect([first.isHeld, second.isHeld]).toEqual([false, true]);
  await second.unlock();
});
