/**
 * A process that counts what the library costs: timers, listeners, subscriptions, promises and bytes. It measures no time. Its
 * commands are counted by test/contract, in virtual time.
 */
import { timers } from "./timers.js";

// Below it stands the library, which keeps the timers of the moment of its import.

import { createHook } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { getHeapStatistics } from "node:v8";
import { Redis } from "ioredis";
import { type Hold, LockClient, type LockClientOptions } from "../../../src/index.js";
import { until } from "../../support/until.js";

/** The counts, each by its title. */
export type Figures = Readonly<Record<string, number>>;
export type Part = "leased" | "renewed" | "waiting" | "cycle";

const FEW = 1_000;
const MANY = 4_000;
/** Milliseconds, so that nothing is renewed meanwhile. */
const LONG = 120_000;
/** Enough runs that the compiler has settled, too. */
const WARM = 2_000;
const RUNS = 200;
const SLICES = 5;

let sent = 0;
let unanswered = 0;

/** Counts commands from now on, which makes a promise for each. */
function watchCommands(): void {
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function (this: Redis, ...args: Parameters<typeof sendCommand>) {
    sent++;
    unanswered++;
    const answered = () => void unanswered--;
    const [command] = args as unknown as [{ promise: Promise<unknown> }];
    command.promise.then(answered, answered);
    return sendCommand.apply(this, args);
  };
}

/** The commands of `work`. */
async function commandsOf(work: () => Promise<unknown>): Promise<number> {
  const before = sent;
  await work();
  return sent - before;
}

const nothingUnderWay = () => until("nothing is under way", () => unanswered === 0);

async function repeat(times: number, act: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) await act();
}

/** Bytes of the heap after garbage collection. */
async function heap(): Promise<number> {
  await repeat(3, async () => {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  });
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Bytes for each run of `act`. No garbage is collected in a slice, because the young generation is larger than that. */
async function allocated(act: () => Promise<unknown>): Promise<number> {
  const slices: number[] = [];
  await repeat(SLICES, async () => {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
    const before = getHeapStatistics().used_heap_size;
    await repeat(RUNS, act);
    slices.push((getHeapStatistics().used_heap_size - before) / RUNS);
  });
  return slices.sort((a, b) => a - b)[SLICES >> 1] as number;
}

/** Promises for each run of `act`, with those of ioredis and of `act` itself. */
async function promises(act: () => Promise<unknown>): Promise<number> {
  let made = 0;
  const init = (_id: number, type: string): void => {
    if (type === "PROMISE") made++;
  };
  const hook = createHook({ init }).enable();
  await repeat(RUNS, act);
  hook.disable();
  return made / RUNS;
}

class Bench {
  readonly redis: Redis;
  #names = 0;

  constructor({ port }: Order) {
    this.redis = new Redis(port, "127.0.0.1");
  }

  /** A client without presence: its commands would be counted by chance here, and have a test of their own. */
  client(options?: LockClientOptions): LockClient {
    return new LockClient(this.redis, { presence: false, ...options });
  }

  name(): string {
    return `cost:${++this.#names}`;
  }

  take(client: LockClient, name: string, lease?: number): Promise<Hold> {
    return client.getLock(name).lock(lease === undefined ? {} : { lease });
  }

  async cycle(client: LockClient): Promise<void> {
    const hold = await this.take(client, "cycle");
    await hold.unlock();
  }

  /** Takes holds a hundred at a time, so that the remains of the calls do not count as bytes of the holds. */
  async holds(count: number, client: LockClient, lease?: number): Promise<Hold[]> {
    const holds: Hold[] = [];
    let left = count;
    const takeSome = async (): Promise<void> => {
      while (left-- > 0) holds.push(await this.take(client, this.name(), lease));
    };
    await Promise.all(Array.from({ length: 100 }, takeSome));
    return holds;
  }

  /** Bytes of the data, without the memory of connections. */
  async data(): Promise<number> {
    const info = await this.redis.info("memory");
    const bytes = (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
    return bytes("used_memory") - bytes("mem_clients_normal");
  }

  get listeners(): number {
    return this.redis.eventNames().reduce((sum, name) => sum + this.redis.listenerCount(name), 0);
  }
}

const held =
  (kind: string, lease?: number) =>
  async (bench: Bench): Promise<Figures> => {
    const client = bench.client({ watchdogTimeout: LONG });
    const [running, listening] = [timers.size, bench.listeners];
    const holds = await bench.holds(FEW, client, lease);
    const set = timers.size - running;
    const [start, data] = [await heap(), await bench.data()];
    holds.push(...(await bench.holds(MANY - FEW, client, lease)));
    const figures = {
      [`timers: ${FEW} ${kind} holds`]: set,
      [`listeners on the connection: ${MANY} ${kind} holds`]: bench.listeners - listening,
      [`heap bytes: an idle ${kind} hold`]: ((await heap()) - start) / (MANY - FEW),
      [`bytes in Redis: a ${kind} lock`]: ((await bench.data()) - data) / (MANY - FEW),
    };
    await client.close({ timeout: 0 });
    if (holds.some(({ isHeld }) => isHeld)) throw new Error("a hold outlived its client");
    await bench.redis.flushall();
    return figures;
  };

async function waiting(bench: Bench): Promise<Figures> {
  watchCommands();
  const redis = bench.redis.duplicate();
  const holder = new LockClient(redis, { presence: false });
  const client = bench.client({ pollCap: LONG });
  const name = bench.name();
  const theirs = await holder.getLock(name).lock({ lease: LONG });
  const controller = new AbortController();
  const { signal } = controller;
  const before = timers.size;
  const calls: Promise<unknown>[] = [];
  const wait = async (count: number): Promise<void> => {
    const lock = client.getLock(name);
    for (let i = 0; i < count; i++) calls.push(lock.lock({ signal }).catch(() => {}));
    const channel = `redisson_lock__channel:{${name}}`;
    await until("it listens", async () => Number((await redis.pubsub("NUMSUB", channel))[1]) > 0);
    await nothingUnderWay();
  };
  await wait(FEW);
  const running = timers.size - before;
  const start = await heap();
  const channels = (await redis.pubsub("CHANNELS", "*")) as string[];
  await wait(MANY - FEW);
  const bytes = (await heap()) - start;
  const listeners = getEventListeners(signal, "abort").length;
  const idle = await commandsOf(() => new Promise((resolve) => setTimeout(resolve, 1_500)));
  controller.abort();
  await Promise.all(calls);
  await theirs.unlock();
  await client.close();
  await holder.close({ timeout: 0 });
  redis.disconnect();
  return {
    [`timers: ${FEW} waiters`]: running,
    [`subscriptions: ${FEW} waiters`]: channels.length,
    [`listeners on a signal: ${MANY} waiters`]: listeners,
    [`commands: ${MANY} idle waiters in 1.5 s`]: idle,
    "heap bytes: a waiter": bytes / (MANY - FEW),
  };
}

/** A warm take and give back of a free lock. */
async function cycle(bench: Bench): Promise<Figures> {
  const client = bench.client({ watchdogTimeout: LONG });
  const whole = () => bench.cycle(client);
  /** Two commands that ioredis sends without the library. */
  const plain = async (): Promise<void> => {
    await bench.redis.eval("return 1", 1, "cycle", "owner", "30000");
    await bench.redis.eval("return 1", 1, "cycle", "owner");
  };
  await repeat(WARM, whole);
  await repeat(WARM, plain);
  const own = await allocated(whole);
  return {
    "bytes allocated: take and give back": own,
    "bytes allocated: take and give back, by those of two commands": own / (await allocated(plain)),
    "promises made: take and give back": await promises(whole),
  };
}

const PARTS: Readonly<Record<Part, (bench: Bench) => Promise<Figures>>> = {
  leased: held("leased", LONG),
  renewed: held("renewed"),
  waiting,
  cycle,
};

interface Order {
  readonly port: number;
  readonly part: Part;
}

export const handlers: { count(order: Order): Promise<Figures> } = {
  async count(order) {
    const bench = new Bench(order);
    // First a cycle, because what only the first call of a process makes must not be counted.
    const client = bench.client();
    await client.getLock("first").run(() => {});
    await client.close();
    const figures = await PARTS[order.part](bench);
    bench.redis.disconnect();
    return figures;
  },
};
