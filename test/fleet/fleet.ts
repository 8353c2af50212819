/**
 * Processes that run worker.mjs on the servers of a site, with a witness on another server, and the history of what
 * they did.
 */
import { randomInt } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import { LockClient } from "../../src/index.js";
import {
  PATIENCE,
  type RedisServer,
  startRedis,
  startWorker,
  UNHURRIED,
  until,
  type Worker,
} from "../support/index.js";
import type { Counter, History } from "./checker.js";
import { type Journals, readJournals } from "./history.js";
import type { Swap } from "./planted.js";
import type { Route, Site } from "./sites.js";

/** Processes that are started alike. */
export interface Crew {
  readonly processes: number;
  readonly kinds: readonly string[];
  readonly tasks: number;
  /** Whether they may be killed: a death would take permits of a semaphore along. */
  readonly mortal: boolean;
}

export interface Terms {
  /** The names of each kind. */
  readonly names: number;
  readonly permits: number;
  /** For the processes: see worker.mjs. */
  readonly config: object;
  readonly swaps?: readonly Swap[];
}

/** One process, and its route to the servers. */
export interface Member {
  readonly name: string;
  readonly crew: Crew;
  readonly worker: Worker;
  readonly route: Route;
}

/** What the processes counted themselves. */
export interface Figures {
  readonly counts: Readonly<Record<string, number>>;
  readonly errors: readonly string[];
}

const COUNTED = ["semaphore", "permits"];
/** Keys of locks, but not those that stay after a release: tombstones, each with a TTL, and the counters of tokens. */
const LOCK = /(lock|fair|fenced|forced|readwrite|unranked|multi|red)-(hot-)?\d+/;
const LASTING = /^(redisson_unlock_latch|holdfast_over|redisson_lock_token):/;

export class Fleet {
  readonly site: Site;
  readonly terms: Terms;
  readonly witness: Redis;
  readonly deaths: Map<string, number> = new Map();
  /** Where the journals are. */
  folder = "";
  readonly #server: RedisServer;
  readonly #live = new Map<string, Member>();
  readonly #clients = new Map<RedisServer, Redis>();
  #folders: string[] = [];
  #isKept = false;
  #started = 0;

  private constructor(site: Site, server: RedisServer, terms: Terms) {
    this.site = site;
    this.terms = terms;
    this.#server = server;
    this.witness = server.connect();
  }

  static async launch(site: Promise<Site>, terms: Terms): Promise<Fleet> {
    const [there, server] = await Promise.all([site, startRedis()]);
    return new Fleet(there, server, terms);
  }

  get members(): Member[] {
    return [...this.#live.values()];
  }

  /** Starts the processes, after giving the semaphores their permits. */
  async man(crews: readonly Crew[]): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), "holdfast-fleet-"));
    this.#folders.push(this.folder);
    await mkdir(join(this.folder, "journals"));
    const client = new LockClient(this.site.connect(), UNHURRIED);
    for (const name of this.#counted(crews))
      await semaphoreIn(client, name).trySetPermits(this.terms.permits);
    await client.close();
    await Promise.all(crews.flatMap((crew) => Array.from({ length: crew.processes }, () => this.#add(crew))));
  }

  #counted(crews: readonly Crew[]): string[] {
    const kinds = COUNTED.filter((kind) => crews.some((crew) => crew.kinds.includes(kind)));
    return kinds.flatMap((kind) => Array.from({ length: this.terms.names }, (_, i) => `${kind}-${i}`));
  }

  async #add(crew: Crew): Promise<void> {
    const name = `p${++this.#started}`;
    const route = await this.site.route();
    const worker = await startWorker(new URL("worker.mjs", import.meta.url));
    this.#live.set(name, { name, crew, worker, route });
    const { kinds, tasks } = crew;
    const { names, config, swaps } = this.terms;
    await worker.request("start", {
      ...config,
      ...{ kinds, tasks, names, swaps, name },
      where: route.where,
      witnessPort: this.#server.port,
      path: join(this.folder, "journals", name),
      seed: randomInt(2 ** 32),
    });
  }

  /** Kills a process, notes its death, and starts another one. */
  async replace(member: Member): Promise<void> {
    this.deaths.set(member.name, Number(process.hrtime.bigint()));
    await Promise.all([this.#kill(member), this.#add(member.crew)]);
  }

  async #kill({ name, worker, route }: Member): Promise<void> {
    this.#live.delete(name);
    await worker.kill();
    await Promise.all(route.proxies.map((proxy) => proxy.stop()));
  }

  /** Resolves when the living processes have counted that many visits. */
  async untilVisited(least: number, timeout: number): Promise<void> {
    const isEnough = async () => ((await this.figures()).counts.visits ?? 0) >= least;
    await until(`${least} visits`, isEnough, { every: 100, timeout });
  }

  async figures(): Promise<Figures> {
    return sum(await this.#ask("figures"));
  }

  /** Lets all tasks end. If a task is stuck, this lasts for ever. */
  async stop(): Promise<Figures> {
    const figures = sum(await this.#ask("stop"));
    await Promise.all(this.members.map((member) => this.#kill(member)));
    return figures;
  }

  /** What the tasks that have not ended do, and what the servers have, in words. */
  async pending(): Promise<string> {
    const told = this.members.map(async ({ name, worker }) => {
      const late = pause(10_000).then(() => ["no answer"]);
      const lines = await Promise.race([worker.request<string[]>("pending"), late]);
      return [name, ...lines].join("\n  ");
    });
    const keys = (await this.#keys()).map(({ key, ttl }) => `${key} ${ttl}`);
    return [...(await Promise.all(told)), ...keys].join("\n");
  }

  #ask(what: "figures" | "stop"): Promise<Figures[]> {
    return Promise.all(this.members.map(({ worker }) => worker.request<Figures>(what)));
  }

  /** The history of all processes, which have ended. Waits until all that they left behind must be gone. */
  async recall(crews: readonly Crew[], timeout: number): Promise<History & Journals> {
    const journals = readJournals(join(this.folder, "journals"));
    const counters = await this.#counters();
    const isClear = async () => (await this.#keys()).length === 0;
    await until("the locks of the dead have lapsed", isClear, { timeout, every: 50 }).catch(() => {
      // The checker says what is left.
    });
    const rests = await this.#rests(this.#counted(crews), timeout);
    return { ...journals, counters, rests, remains: await this.#keys(), deaths: new Map(this.deaths) };
  }

  async #counters(): Promise<Counter[]> {
    const keys = await this.witness.keys("writes:*");
    return Promise.all(
      keys.map(async (key) => {
        const lock = key.slice("writes:".length);
        const [writes, value] = await this.witness.mget(key, `counter:${lock}`);
        return { lock, value: Number(value), writes: Number(writes) };
      }),
    );
  }

  async #keys(): Promise<{ lock: string; key: string; ttl: number }[]> {
    const found = (await this.site.masters()).map(async (master) => {
      const server = this.#clients.get(master) ?? master.connect();
      this.#clients.set(master, server);
      const keys = (await server.keys("*")).filter((key) => LOCK.test(key) && !LASTING.test(key));
      return Promise.all(
        keys.map(async (key) => ({ lock: LOCK.exec(key)?.[0] ?? key, key, ttl: await server.pttl(key) })),
      );
    });
    return (await Promise.all(found)).flat().filter(({ ttl }) => ttl !== -2);
  }

  /** The free permits, as soon as all are free; if that does not happen in time, those that are. */
  async #rests(names: readonly string[], timeout: number): Promise<{ lock: string; available: number }[]> {
    const client = new LockClient(this.site.connect(), UNHURRIED);
    const rests = await Promise.all(
      names.map(async (lock) => {
        const free = () => semaphoreIn(client, lock).availablePermits();
        const isFull = async () => (await free()) === this.terms.permits;
        await until(`all permits of ${lock} are back`, isFull, { timeout, every: 50 }).catch(() => {
          // The checker says how many are.
        });
        return { lock, available: await free() };
      }),
    );
    await client.close();
    return rests;
  }

  /** Called after each round, however it ended, so that nothing of it disturbs the next one. */
  async clear(): Promise<void> {
    await Promise.all(this.members.map((member) => this.#kill(member)));
    await Promise.all((await this.site.masters()).map((server) => server.call("FLUSHALL")));
    await this.witness.flushall();
    this.deaths.clear();
    if (!this.#isKept)
      await Promise.all(this.#folders.map((folder) => rm(folder, { recursive: true, force: true })));
    this.#folders = [];
    this.#isKept = false;
  }

  /** The journals of this round stay, because a violation may take hours to come again. */
  keep(): string {
    this.#isKept = true;
    return this.folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((member) => this.#kill(member)));
    if (!this.#isKept)
      await Promise.all(this.#folders.map((folder) => rm(folder, { recursive: true, force: true })));
    await Promise.all([this.site.stop(), this.#server.stop()]);
  }
}

/** What both kinds of semaphores have. */
function semaphoreIn(client: LockClient, name: string) {
  return name.startsWith("permits") ? client.getPermitExpirableSemaphore(name) : client.getSemaphore(name);
}

function sum(all: readonly Figures[]): Figures {
  const counts: Record<string, number> = {};
  for (const figures of all) {
    for (const [name, count] of Object.entries(figures.counts)) counts[name] = (counts[name] ?? 0) + count;
  }
  return { counts, errors: all.flatMap(({ errors }) => errors) };
}

/** Milliseconds for what must come, but on a busy machine comes late. */
export const AT_LAST: number = 6 * PATIENCE;
