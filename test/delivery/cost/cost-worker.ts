/**
 * A process that counts what the library costs: commands, round trips, timers, listeners, subscriptions, and bytes. It
 * measures no time. It can make a mistake on purpose, to show that the counting would notice.
 */
// Before the library, which keeps the timers of the moment of its import.
import "./timers.js";
import { getEventListeners } from "node:events";
import { Redis } from "ioredis";
import { type Hold, LockClient, type LockClientOptions } from "../../../src/index.js";
import { HashBackend } from "../../../src/kinds/hash.js";
import { LockAcquisition } from "../../../src/locks/acquire.js";
import { until } from "../../support/until.js";
import { timers } from "./timers.js";

/** The mistakes that the worker can make. */
export type Mistake = "a signal for each hold" | "a timer for each hold" | "a command more";

/** The counts, each by its title. */
export type Figures = Readonly<Record<string, number>>;

const FEW = 1_000;
const MANY = 4_000;
const LONG = 120_000;

let sent = 0;
let unanswered = 0;
let roundTrips = 0;
const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function (this: Redis, ...args: Parameters<typeof sendCommand>) {
  sent++;
  if (unanswered++ === 0) roundTrips++;
  const answered = () => void unanswered--;
  const [command] = args as unknown as [{ promise: Promise<unknown> }];
  command.promise.then(answered, answered);
  return sendCommand.apply(this, args);
};

/** The commands and round trips of `work`, divided by `each`, the number of its pieces. */
async function commands(work: () => Promise<unknown>, each = 1): Promise<[sent: number, roundTrips: number]> {
  const before = [sent, roundTrips] as const;
  await work();
  return [(sent - before[0]) / each, (roundTrips - before[1]) / each];
}

/** Bytes of the heap after garbage collection. */
async function heap(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

class Bench {
  readonly redis: Redis;
  readonly #port: number;
  #names = 0;

  constructor(port: number) {
    this.#port = port;
    this.redis = new Redis(port, "127.0.0.1");
  }

  /** A client without presence: its commands would be counted by chance here, and have a test of their own. */
  client(options?: LockClientOptions): LockClient {
    return new LockClient(this.redis, { presence: false, ...options });
  }

  name(): string {
    return `cost:${++this.#names}`;
  }

  /** Bytes of the data, without the memory of connections. */
  async data(): Promise<number> {
    const info = await this.redis.info("memory");
    const bytes = (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
    return bytes("used_memory") - bytes("mem_clients_normal");
  }

  /** Takes holds a hundred at a time, so that the remains of the calls do not count as bytes of the holds. */
  async holds(count: number, client: LockClient, lease?: number): Promise<Hold[]> {
    const options = lease === undefined ? {} : { lease };
    const holds: Hold[] = [];
    const take = async (): Promise<void> => {
      while (holds.length < count) {
        const place = holds.push(undefined as unknown as Hold) - 1;
        holds[place] = await client.getLock(this.name()).lock(options);
      }
    };
    await Promise.all(Array.from({ length: 100 }, take));
    return holds;
  }

  /** A client with a connection of its own, which waits for the locks of another client. */
  other(): { client: LockClient; end: () => Promise<void> } {
    const redis = new Redis(this.#port, "127.0.0.1");
    const client = new LockClient(redis, { presence: false });
    return { client, end: () => client.close({ timeout: 0 }).then(() => redis.disconnect()) };
  }
}

async function free(bench: Bench): Promise<Figures> {
  const client = bench.client();
  // First a run of each script, because its first call makes the server load it.
  await client.getLock(bench.name()).run((hold) => client.getLock(hold.lockName).run(() => {}));
  const figures: Record<string, number> = {};
  const count = async <T>(title: string, work: () => Promise<T>): Promise<T> => {
    let result: T | undefined;
    const [all, trips] = await commands(async () => {
      result = await work();
    });
    figures[`commands: ${title}`] = all;
    figures[`round trips: ${title}`] = trips;
    return result as T;
  };
  const lock = client.getLock(bench.name());
  const hold = await count("take a free lock", () => lock.lock());
  const nested = await count("take it again", () => lock.lock({ owner: hold }));
  await count("give back a nested hold", () => nested.unlock());
  await count("give back the last hold", () => hold.unlock());
  await client.close();
  return figures;
}

async function held(bench: Bench, lease?: number): Promise<Figures> {
  const client = bench.client({ watchdogTimeout: LONG });
  const before = timers.size;
  const listeners = bench.redis.eventNames().reduce((sum, name) => sum + bench.redis.listenerCount(name), 0);
  const holds = await bench.holds(FEW, client, lease);
  const kind = lease === undefined ? "renewed" : "leased";
  const [start, data] = [await heap(), await bench.data()];
  const running = timers.size - before;
  holds.push(...(await bench.holds(MANY - FEW, client, lease)));
  const bytes = (await heap()) - start;
  const stored = (await bench.data()) - data;
  const listening = bench.redis.eventNames().reduce((sum, name) => sum + bench.redis.listenerCount(name), 0);
  await client.close({ timeout: 0 });
  await bench.redis.flushall();
  return {
    [`timers: ${FEW} ${kind} holds`]: running,
    [`listeners on the connection: ${MANY} ${kind} holds`]: listening - listeners,
    [`heap bytes: an idle ${kind} hold`]: bytes / (MANY - FEW),
    [`bytes in Redis: a ${kind} lock`]: stored / (MANY - FEW),
    ...(holds.every(({ isHeld }) => !isHeld) ? {} : { "holds that outlived their client": 1 }),
  };
}

async function renewals(bench: Bench): Promise<Figures> {
  const client = bench.client({ watchdogTimeout: 6_000 });
  let renewed = 0;
  client.on("renewed", () => renewed++);
  await bench.holds(FEW, client);
  await until("all were renewed once", () => renewed >= FEW, { timeout: 15_000 });
  const [all] = await commands(() =>
    until("all were renewed again", () => renewed >= 2 * FEW, { timeout: 15_000 }),
  );
  await client.close({ timeout: 0 });
  return { [`commands: renew ${FEW} holds`]: all };
}

function channelOf(name: string): string {
  return `redisson_lock__channel:{${name}}`;
}

async function waiting(bench: Bench): Promise<Figures> {
  const { client: holder, end } = bench.other();
  const client = bench.client({ pollCap: LONG });
  const name = bench.name();
  const theirs = await holder.getLock(name).lock({ lease: LONG });
  const controller = new AbortController();
  const { signal } = controller;
  const before = timers.size;
  const calls: Promise<unknown>[] = [];
  const wait = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++)
      calls.push(
        client
          .getLock(name)
          .lock({ signal })
          .catch(() => {}),
      );
    await until(
      "it listens",
      async () => Number((await bench.redis.pubsub("NUMSUB", channelOf(name)))[1]) > 0,
    );
    await until("nothing is under way", () => unanswered === 0);
  };
  await wait(FEW);
  const start = await heap();
  const running = timers.size - before;
  const channels = (await bench.redis.pubsub("CHANNELS", "*")) as string[];
  await wait(MANY - FEW);
  const bytes = (await heap()) - start;
  const listeners = getEventListeners(signal, "abort").length;
  const [idle] = await commands(() => new Promise((resolve) => setTimeout(resolve, 1_500)));
  controller.abort();
  await Promise.all(calls);
  await theirs.unlock();
  await client.close();
  await end();
  return {
    [`timers: ${FEW} waiters`]: running,
    [`subscriptions: ${FEW} waiters`]: channels.length,
    [`listeners on a signal: ${MANY} waiters`]: listeners,
    [`commands: ${MANY} idle waiters in 1.5 s`]: idle,
    "heap bytes: a waiter": bytes / (MANY - FEW),
  };
}

async function handOver(bench: Bench): Promise<Figures> {
  const client = bench.client();
  const lock = client.getLock(bench.name());
  const first = await lock.lock();
  const turns = 100;
  const calls = Array.from({ length: turns }, () => lock.run(() => {}));
  await until("nothing is under way", () => unanswered === 0);
  const [all] = await commands(() => Promise.all([first.unlock(), ...calls]), turns);
  await client.close();
  return { "commands: a hand-over inside the process": all };
}

function plant(mistake: Mistake | undefined): void {
  const { accept } = LockAcquisition.prototype;
  if (mistake === "a signal for each hold") {
    LockAcquisition.prototype.accept = function (...args) {
      const grant = accept.apply(this, args);
      void grant?.signal;
      return grant;
    };
  } else if (mistake === "a timer for each hold") {
    LockAcquisition.prototype.accept = function (...args) {
      setTimeout(() => {}, LONG).unref();
      return accept.apply(this, args);
    };
  } else if (mistake === "a command more") {
    const { acquire } = HashBackend.prototype;
    HashBackend.prototype.acquire = async function (attempt) {
      await this.state("");
      return acquire.call(this, attempt);
    };
  }
}

export type Part = "free" | "leased" | "renewed" | "renewals" | "waiting" | "handOver";

const PARTS: Readonly<Record<Part, (bench: Bench) => Promise<Figures>>> = {
  free,
  leased: (bench) => held(bench, LONG),
  renewed: (bench) => held(bench),
  renewals,
  waiting,
  handOver,
};

interface Order {
  readonly port: number;
  readonly part: Part;
  readonly mistake?: Mistake;
}

export const handlers: { count(order: Order): Promise<Figures> } = {
  async count({ port, part, mistake }) {
    plant(mistake);
    const bench = new Bench(port);
    // First a whole run, because what only the first call of a process makes must not be counted.
    await bench.redis.ping();
    await free(bench);
    const figures = await PARTS[part](bench);
    bench.redis.disconnect();
    return figures;
  },
};
