/** What the tests of RedLock share: masters that a test can harm, and parties that have a client for each of them. */
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { afterEach, expect } from "vitest";
import { type Lock, LockClient, type LockClientOptions, type MultiHold, RedLock } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { isMarker } from "../contract/wire.js";
import { failOnUnhandledRejections, freshName, SOON, script, type Version } from "../faults/harness.js";
import {
  type ClientOptions,
  type FaultProxy,
  forFile,
  isPresence,
  type Matcher,
  type RedisServer,
  redisCall,
  startProxy,
  startRedis,
  until,
} from "../support/index.js";

export { NEVER, SOON, unlockAll } from "../faults/harness.js";
/** Milliseconds of a lease that outlives every test, and gives masters seconds for their answers. */
export const LONG = 600_000;

/**
 * Independent masters for the tests of one file. Masters that a test has stopped or killed are up again for the next
 * test. The file fails if a promise rejects without a handler.
 */
export function useMasters(count: number, args: readonly string[] = []): Promise<readonly RedisServer[]> {
  failOnUnhandledRejections();
  const servers: RedisServer[] = [];
  afterEach(async () => {
    await Promise.all(
      servers.map(async (server) => {
        server.resume();
        await redisCall(server, ["PING"], 2_000).catch(() => server.restart());
      }),
    );
  });
  const starting = async () => {
    const server = await forFile(startRedis({ args }));
    servers.push(server);
    return server;
  };
  return Promise.all(Array.from({ length: count }, starting));
}

export interface PartyOptions {
  readonly name?: string;
  /** The version of ioredis. Default the newest. */
  readonly version?: Version;
  readonly client?: LockClientOptions;
  readonly redis?: ClientOptions;
  /** Makes a member. Default the plain lock. */
  readonly make?: (client: LockClient, name: string) => Lock;
  /** Whether the clients may still be unconnected when the test begins. */
  readonly cold?: boolean;
}

/** A client for each master, behind a proxy of its own, and a RedLock over them. */
export class Party implements AsyncDisposable {
  readonly name: string;
  readonly servers: readonly RedisServer[];
  readonly proxies: readonly FaultProxy[];
  readonly redises: readonly (Redis | Redis5)[];
  readonly clients: readonly LockClient[];
  readonly lock: RedLock;
  readonly #make: (client: LockClient, name: string) => Lock;

  private constructor(
    servers: readonly RedisServer[],
    proxies: readonly FaultProxy[],
    {
      name = freshName(),
      version = 6,
      client,
      redis,
      make = (by, lockName) => by.getLock(lockName),
    }: PartyOptions,
  ) {
    this.name = name;
    this.servers = servers;
    this.proxies = proxies;
    this.redises = proxies.map(({ host, port }) => connect(version, { host, port, ...redis }));
    for (const each of this.redises) each.on("error", () => {});
    // Long times, so that a busy machine answers in time; a test about time-outs sets its own.
    const settings = { watchdogTimeout: 1_000_000, commandTimeout: 10_000, ...client };
    this.clients = this.redises.map((each) => new LockClient(each, settings));
    this.#make = make;
    this.lock = this.make();
  }

  static async of(servers: readonly RedisServer[], options: PartyOptions = {}): Promise<Party> {
    const proxies = await Promise.all(servers.map((server) => startProxy(server)));
    const party = new Party(servers, proxies, options);
    if (!options.cold) await patiently("all masters are there", () => party.#ready());
    return party;
  }

  /** Another object for the same lock, or for a lock with another name. */
  make(name: string = this.name): RedLock {
    return new RedLock(...this.clients.map((client) => this.#make(client, name)));
  }

  client(i: number): LockClient {
    return this.clients[i] as LockClient;
  }

  proxy(i: number): FaultProxy {
    return this.proxies[i] as FaultProxy;
  }

  /** Takes the lock and gives it back, so that the extra work of a first call is done. */
  async warmUp(): Promise<void> {
    await patiently("it is warm", async () => (await this.lock.lock()).unlock());
    // From then on no master owes an answer.
    await Promise.all(this.redises.map((redis) => redis.ping()));
  }

  async #ready(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.ready()));
  }

  /** How often each master was asked for the lock. */
  get asked(): readonly number[] {
    return this.proxies.map((proxy) => proxy.count(script("acquire", this.name)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const proxy of this.proxies) proxy.restore();
    await Promise.all(this.clients.map((client) => client.close({ timeout: 0 })));
    for (const redis of this.redises) redis.disconnect();
    await Promise.all(this.proxies.map((proxy) => proxy.stop()));
  }
}

function connect(version: Version, options: object): Redis | Redis5 {
  return version === 5 ? new Redis5(options) : new Redis(options);
}

/** Repeats the work until it succeeds, because on a busy machine a short time-out may be over first. */
async function patiently(what: string, work: () => Promise<void>): Promise<void> {
  await until(what, () => work().then(() => true), { timeout: 2 * SOON });
}

/** Matches the scripts whose keys or arguments contain the name of the party's lock. */
export function ownScripts({ name }: Party): Matcher {
  return (command) => {
    const [verb = "", , ...rest] = command;
    return /^EVAL(SHA)?$/.test(verb) && rest.some((word) => word.includes(name)) && !isPresence(command);
  };
}

/** The keys of a lock on one master, without markers. */
async function keysOn(server: RedisServer, name: string): Promise<string[]> {
  const keys = (await server.call("KEYS", `*${name}*`)) as string[];
  return keys.filter((key) => !isMarker(key)).sort();
}

/** The numbers of the masters that have the lock's key. */
export async function heldOn({ servers, name }: Party): Promise<number[]> {
  const keys = await Promise.all(servers.map((server) => keysOn(server, name)));
  return keys.flatMap((found, i) => (found.includes(name) ? [i] : []));
}

/** Soon no master has a key of the lock. All masters must answer. */
export async function expectNothingLeft({ servers, name }: Party, timeout: number = SOON): Promise<void> {
  const left = (): Promise<string[][]> => Promise.all(servers.map((server) => keysOn(server, name)));
  const none = servers.map(() => []);
  await until(`${name} is free`, async () => (await left()).flat().length === 0, { timeout }).catch(() => {});
  expect(await left()).toEqual(none);
}

/** The remaining milliseconds of the lock's key on each master; -2 where the key is missing. */
export async function ttlsOf({ servers, name }: Party): Promise<number[]> {
  return Promise.all(servers.map(async (server) => Number(await server.call("PTTL", name))));
}

/** Gives the lock's key on these masters to another owner, for `ttl` milliseconds. */
export async function occupy({ servers, name }: Party, on: readonly number[], ttl: number): Promise<void> {
  for (const i of on) {
    const server = servers[i] as RedisServer;
    await server.call("HSET", name, "b0e5b1a2-0000-4000-8000-000000000000:1", "1");
    await server.call("PEXPIRE", name, ttl);
  }
}

/** Deletes the keys that {@link occupy} made, with a message or silently. */
export async function vacate(
  { servers, name }: Party,
  on: readonly number[],
  told: boolean = true,
): Promise<void> {
  for (const i of on) {
    const server = servers[i] as RedisServer;
    await server.call("DEL", name);
    if (told) await server.call("PUBLISH", `redisson_lock__channel:{${name}}`, "0");
  }
}

/** A call that waits for a held lock: it was refused, and has tried again since it listens. */
export async function parked<T>(party: Party, call: () => Promise<T>): Promise<{ done: Promise<T> }> {
  const before = party.asked;
  const waiting = await untilWaiting(party.client(0), call);
  // Only a majority: a master that owes an answer is not asked again.
  await until("it has asked a majority again", () => {
    const again = party.asked.filter((count, i) => count >= (before[i] ?? 0) + 2);
    return again.length > party.asked.length / 2;
  });
  await Promise.all(party.redises.map((redis) => redis.ping())); // then the answers have arrived
  return waiting;
}

/** Soon all masters are part of the hold. */
export async function joined(hold: MultiHold, count: number = 3, timeout: number = SOON): Promise<MultiHold> {
  await until("all have granted it", () => hold.members.length === count, { timeout });
  return hold;
}

/** Deletes the lock's key on these masters, of a hold that all masters have granted. */
export async function forget({ servers, name }: Party, hold: MultiHold, ...on: number[]): Promise<void> {
  await joined(hold, servers.length);
  for (const i of on) await servers[i]?.call("DEL", name);
}

/** Takes the lock on all masters, with repetitions, because a machine may be too busy for a short lease. */
export function takeAll(party: Party, lease?: number): Promise<MultiHold> {
  return until(
    "it is taken on all masters",
    async () => {
      const hold = await party.lock.tryLock(0, lease);
      if (!hold) return undefined;
      // Give it back and repeat, because a master that was too late this time grants the next hold.
      await joined(hold, party.servers.length, 1_000).catch(() => hold.unlock());
      return hold.isHeld ? hold : undefined;
    },
    { timeout: SOON },
  ) as Promise<MultiHold>;
}

export interface Timed<T> {
  readonly value: T;
  /** Milliseconds. */
  readonly took: number;
}

export async function timed<T>(work: () => Promise<T>): Promise<Timed<T>> {
  const begun = performance.now();
  const value = await work();
  return { value, took: performance.now() - begun };
}
