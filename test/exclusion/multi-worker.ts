/** A process with many tasks; each takes random groups of locks of all kinds on two servers, again and again. */
import { Redis } from "ioredis";
import { type Lock, LockClient, MultiLock } from "../../src/index.js";

export interface Start {
  /** The ports of the two servers that have the locks; the counters are on the first. */
  readonly ports: readonly [number, number];
  readonly tasks: number;
  /** The number of stays of each task. */
  readonly stays: number;
  /** The most locks of a group. */
  readonly most: number;
}

export interface Figures {
  /** The number of exclusive stays, by the lock's name. */
  readonly stays: Record<string, number>;
  /** Milliseconds that each outermost call waited. */
  readonly waits: number[];
  /** Counters that changed while a task held their lock. */
  readonly torn: string[];
  readonly failures: string[];
}

interface Choice {
  readonly name: string;
  readonly lock: Lock;
  readonly exclusive: boolean;
}

/** The names are chosen so that kinds and servers are mixed in the order of the names. */
function choicesOf([one, two]: readonly [LockClient, LockClient]): readonly Choice[] {
  const [x, y] = [one.getReadWriteLock("multi-4"), two.getReadWriteLock("multi-5")];
  return [
    { name: "multi-0", lock: two.getLock("multi-0"), exclusive: true },
    { name: "multi-1", lock: one.getFairLock("multi-1"), exclusive: true },
    { name: "multi-2", lock: two.getFencedLock("multi-2"), exclusive: true },
    { name: "multi-3", lock: one.getLock("multi-3"), exclusive: true },
    { name: "multi-4", lock: x.writeLock(), exclusive: true },
    { name: "multi-4", lock: x.readLock(), exclusive: false },
    { name: "multi-5", lock: y.writeLock(), exclusive: true },
    { name: "multi-5", lock: y.readLock(), exclusive: false },
  ];
}

/** Some of them in any order: at least one, and up to `most`. */
function some<T>(all: readonly T[], most: number): T[] {
  const rest = [...all];
  const count = 1 + Math.floor(Math.random() * Math.min(most, all.length));
  return Array.from({ length: count }, () => rest.splice(Math.floor(Math.random() * rest.length), 1)[0] as T);
}

const counter = (name: string): string => `counter:${name}`;

/** Reads, lets other tasks run, and writes: two tasks at a time would lose a count. */
async function visit(chosen: readonly Choice[], counters: Redis, { stays, torn }: Figures): Promise<void> {
  const mine = new Set(chosen.flatMap(({ name, exclusive }) => (exclusive ? [name] : [])));
  const names = [...new Set(chosen.map(({ name }) => name))];
  const before = await counters.mget(names.map(counter));
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
  const after = await counters.mget(names.map(counter));
  for (const [i, name] of names.entries()) {
    if (before[i] !== after[i]) torn.push(name);
    if (!mine.has(name)) continue;
    await counters.set(counter(name), Number(before[i] ?? 0) + 1);
    stays[name] = (stays[name] ?? 0) + 1;
  }
}

/** The handlers for `worker.request`. */
export const handlers: Record<string, (start: Start) => Promise<unknown>> = {
  work: async ({ ports, tasks, stays, most }): Promise<Figures> => {
    const figures: Figures = { stays: {}, waits: [], torn: [], failures: [] };
    const all = [...ports, ports[0]].map((port) => new Redis({ port, host: "127.0.0.1" }));
    const [one, two, counters] = all as [Redis, Redis, Redis];
    // The poll is so rare that a waiter that only the poll would wake comes too late for the test.
    const clients = [one, two].map((redis) => new LockClient(redis, { pollCap: 30_000 }));
    const choices = choicesOf(clients as [LockClient, LockClient]);

    const stay = async (): Promise<void> => {
      const chosen = some(choices, most);
      const asked = performance.now();
      await new MultiLock(...chosen.map(({ lock }) => lock)).run(async () => {
        figures.waits.push(performance.now() - asked);
        await visit(chosen, counters, figures);
        const inner = some(chosen, most);
        const dice = Math.random();
        if (dice < 0.2) await inner[0]?.lock.run(() => visit(inner.slice(0, 1), counters, figures));
        if (dice > 0.8)
          await new MultiLock(...inner.map(({ lock }) => lock)).run(() => visit(inner, counters, figures));
      });
    };
    const task = async (): Promise<void> => {
      for (let n = 0; n < stays; n++) await stay();
    };
    const note = (reason: unknown): void => void figures.failures.push(String(reason));
    process.on("unhandledRejection", note);
    await Promise.all(Array.from({ length: tasks }, () => task().catch(note)));
    for (const client of clients) await client.close();
    for (const redis of all) redis.disconnect();
    return figures;
  },
};
