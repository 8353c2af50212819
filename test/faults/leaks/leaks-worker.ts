/**
 * A process that does one thing very often, and counts before and after everything that could grow: heap, timers,
 * sockets, listeners of the connection. The test itself counts the keys and connections of Redis.
 */
import { Redis } from "ioredis";
import { type Hold, LockClient } from "../../../src/index.js";

export interface WorkRequest {
  readonly port: number;
  readonly work: Work;
  readonly times: number;
}

/** The counts when all work is over and garbage is collected. */
export interface Left {
  readonly heap: number;
  readonly resources: Readonly<Record<string, number>>;
  readonly listeners: number;
}

export interface Grown {
  readonly before: Left;
  /** The counts after the first half: what grows only once is no leak. */
  readonly halfway: Left;
  readonly after: Left;
  readonly unhandled: readonly string[];
}

export type Work =
  | "names taken and given back"
  | "calls aborted"
  | "calls without an answer"
  | "holds lost"
  | "clients opened and closed"
  | "hand-overs";

/** Times so long that nothing is lost or refused because the machine is busy. */
const UNHURRIED = { commandTimeout: 60_000, watchdogTimeout: 600_000 };

/** How many are done at the same time: work that is under way must not count as growth. */
const BATCH = 200;

const unhandled: string[] = [];
process.on("unhandledRejection", (reason) => unhandled.push(String(reason)));

async function batches(times: number, one: (i: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < times; from += BATCH) {
    const count = Math.min(BATCH, times - from);
    await Promise.all(Array.from({ length: count }, (_, i) => one(from + i)));
  }
}

const WORKS: Record<Work, (client: LockClient, redis: Redis, times: number) => Promise<void>> = {
  "names taken and given back": async (client, _redis, times) => {
    await batches(times, async (i) => (await client.getLock(`name ${i}`).lock()).unlock());
  },

  "calls aborted": async (client, _redis, times) => {
    const hold = await client.getLock("busy").lock();
    await batches(times, async () => {
      const own = new AbortController();
      const call = client.getLock("busy").lock({ signal: own.signal });
      own.abort(new Error("enough"));
      await call.catch(() => {});
    });
    await hold.unlock();
  },

  "calls without an answer": async (client, redis, times) => {
    // Each is given up while the server stands still, and undone when it goes on, which leaves a marker.
    const name = `unanswered ${performance.now()}`;
    await redis.client("PAUSE", 600_000, "WRITE");
    await batches(times, async (i) => {
      const refused = await client
        .getLock(`${name} ${i}`)
        .tryLock()
        .catch(({ code }) => code);
      if (refused !== "UNAVAILABLE") throw new Error(`a call ended with ${refused}`);
    });
    await redis.client("UNPAUSE");
    for (let markers = 0; markers < times; await new Promise((resolve) => setTimeout(resolve, 50)))
      markers = (await redis.keys(`?*${name}*`)).length;
  },

  "holds lost": async (client, redis, times) => {
    await batches(times, async (i) => {
      const hold: Hold = await client.getLock(`lost ${i}`).lock();
      hold.signal.addEventListener("abort", () => {});
      await redis.del(hold.lockName);
      await hold.extend(5_000).catch(() => {});
      await hold.unlock().catch(() => {});
    });
  },

  "clients opened and closed": async (_client, redis, times) => {
    for (let i = 0; i < times; i++) {
      const client = new LockClient(redis, UNHURRIED);
      const hold = await client.getLock("shared").lock();
      const waiting = new Promise((resolve) => client.once("waiting", resolve));
      const next = client.getLock("shared").lock();
      await waiting;
      await hold.unlock();
      await (await next).unlock();
      await client.close();
    }
  },

  "hand-overs": async (client, _redis, times) => {
    const tasks = 50;
    const work = async (): Promise<void> => {
      for (let i = 0; i < times / tasks; i++) await client.getLock("hot").run(() => {});
    };
    await Promise.all(Array.from({ length: tasks }, work));
  },
};

async function left(redis: Redis): Promise<Left> {
  for (let i = 0; i < 4; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const resources: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1;
  const listeners = redis.eventNames().reduce((sum, name) => sum + redis.listenerCount(name), 0);
  return { heap: process.memoryUsage().heapUsed, resources, listeners };
}

export const handlers = {
  async grow({ port, work, times }: WorkRequest): Promise<Grown> {
    const redis = new Redis(port);
    const hasty = work === "calls without an answer" ? { commandTimeout: 100 } : {};
    const client = new LockClient(redis, { ...UNHURRIED, ...hasty });
    // First some work, for what is made only once: connections, caches of the compiler.
    await WORKS[work](client, redis, Math.min(times, 1_000));
    const before = await left(redis);
    await WORKS[work](client, redis, times / 2);
    const halfway = await left(redis);
    await WORKS[work](client, redis, times / 2);
    const after = await left(redis);
    await client.close({ timeout: 0 });
    redis.disconnect();
    return { before, halfway, after, unhandled };
  },
};
