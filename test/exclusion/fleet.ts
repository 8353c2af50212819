/**
 * Processes that run workload.mjs on the lock servers of a site, with a witness on another server; the ways to harm
 * them, and the verdict on what they did.
 */
import { randomInt } from "node:crypto";
import { writeFile } from "node:fs/promises";
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
  type WorkerOptions,
} from "../support/index.js";
import { type Ask, check, type Finding, type History, type Limits, type Sighting } from "./checker.js";
import { keysOf, leftBy, readCounters, readLag, readSections, readStalls, sight } from "./history.js";
import { withoutDoubtfulPlaces } from "./order.js";
import type { Deaths, Outage } from "./sections.js";
import { type Route, SingleSite, type Site } from "./sites.js";

/** How often things happened, as the workers count it. */
export interface Figures {
  readonly counts: Readonly<Record<string, number>>;
  readonly errors: readonly string[];
}

export interface Part {
  readonly processes: number;
  readonly config: object;
  readonly limits: Limits;
  /** How the processes are started. */
  readonly worker?: WorkerOptions;
}

export interface Verdict {
  readonly history: History;
  readonly findings: readonly Finding[];
}

export interface Chaos {
  readonly deaths: Deaths;
  readonly pauses: number;
}

/** One process, and its route to the servers. */
export interface Member {
  readonly name: string;
  readonly worker: Worker;
  readonly route: Route;
}

/** The figures of one process. */
export type WorkerFigures = Record<string, number> & { errors: string[] };

/** Finds the name of a lock of the workload in any of the lock's keys. */
const NAMES = /[a-z]+-(hot|cool)-\d+/;
const FAIR = /^fair-/;
/** Milliseconds for the answer of a busy machine. */
const SHORTEST_VISIT = 2_000;

export class Fleet {
  readonly site: Site;
  readonly witness: RedisServer;
  readonly #live = new Map<string, Member>();
  readonly #clients = new Map<RedisServer, Redis>();
  /** For each process, the ids of its lock clients. */
  readonly #clientsOf = new Map<string, readonly string[]>();
  readonly #left = new Map<string, Outage[]>();
  #started = 0;

  constructor(site: Site, witness: RedisServer) {
    this.site = site;
    this.witness = witness;
  }

  /** A fleet on a server of its own, without proxies. */
  static async launch(): Promise<Fleet> {
    const [locks, witness] = await Promise.all([startRedis(), startRedis()]);
    return new Fleet(new SingleSite(locks, { proxied: false }), witness);
  }

  get members(): Member[] {
    return [...this.#live.values()];
  }

  async man(part: Part): Promise<void> {
    await Promise.all(Array.from({ length: part.processes }, () => this.add(part)));
  }

  async add(part: Part): Promise<void> {
    const name = `p${++this.#started}`;
    const route = await this.site.route();
    const worker = await startWorker(new URL("workload.mjs", import.meta.url), part.worker);
    this.#live.set(name, { name, worker, route });
    const servers = { where: route.where, witnessPort: this.witness.port };
    const ids = await worker.request<string[]>("start", {
      ...part.config,
      ...servers,
      name,
      seed: randomInt(2 ** 32),
    });
    this.#clientsOf.set(name, ids);
  }

  async figures(): Promise<Figures> {
    return sum(await this.#ask("figures"));
  }

  /** Lets all tasks end. If a task is stuck, this lasts until the test's time is over. */
  async stop(): Promise<Figures> {
    const stopped = await this.#ask("stop");
    await this.#killAll();
    return sum(stopped);
  }

  /** Resolves when the living processes have counted at least this much of each. */
  async untilCounted(least: Readonly<Record<string, number>>, timeout: number = PATIENCE): Promise<void> {
    const wanted = Object.entries(least);
    await until(
      wanted.map(([name, count]) => `${count} ${name}`).join(", "),
      async () => {
        const { counts } = await this.figures();
        return wanted.every(([name, count]) => (counts[name] ?? 0) >= count);
      },
      { every: 100, timeout },
    );
  }

  /** Kills and pauses processes at random moments for `ms` milliseconds, and until `kills` were killed. */
  async harass(part: Part, ms: number, kills: number, between = 200): Promise<Chaos> {
    const deaths = new Map<string, bigint>();
    let pauses = 0;
    const end = performance.now() + ms;
    while (performance.now() < end || deaths.size < kills) {
      if (randomInt(2) === 0) {
        const { worker } = this.#anyone();
        pauses++;
        worker.pause();
        await pause(randomInt(300));
        worker.resume();
        await pause(randomInt(between));
        continue;
      }
      await pause(randomInt(between + 100));
      const member = this.#anyone();
      const died = member.worker.exited.then(() => this.#noteLeft(member, deaths.get(member.name) as bigint));
      await Promise.all([this.replaceOne(part, deaths, member), died]);
    }
    return { deaths, pauses };
  }

  /** What a process had sent before it died is executed before what is sent after its end, but for proxies between. */
  async #noteLeft({ name }: Member, from: bigint): Promise<void> {
    const clients = this.#clientsOf.get(name) ?? [];
    for (const server of await this.#servers()) {
      for (const { lock, until } of await leftBy(clients, server, await keysOf(server, NAMES))) {
        this.#left.set(lock, [...(this.#left.get(lock) ?? []), { from, until }]);
      }
    }
  }

  /** Kills a process, notes its death, and starts another one. */
  async replaceOne(part: Part, deaths: Map<string, bigint>, member: Member = this.#anyone()): Promise<void> {
    deaths.set(member.name, process.hrtime.bigint());
    await Promise.all([this.#kill(member), this.add(part)]);
  }

  #anyone(): Member {
    return this.members[randomInt(this.#live.size)] as Member;
  }

  async #kill({ name, worker, route }: Member): Promise<void> {
    this.#live.delete(name);
    await worker.kill();
    await Promise.all(route.proxies.map((proxy) => proxy.stop()));
  }

  async #killAll(): Promise<void> {
    await Promise.all(this.members.map((member) => this.#kill(member)));
  }

  /**
   * The checked history of the witness. The locks must be free, and their queues empty, within the limits after the last
   * death. Afterwards both servers are empty.
   */
  async judge(
    deaths: Deaths,
    limits: Limits,
    forced: (lock: string) => boolean = () => false,
  ): Promise<Verdict> {
    const history = await this.recall(deaths, limits, forced);
    const sections = withoutDoubtfulPlaces(history, [], 0n);
    const findings = check({ ...history, sections }, limits);
    if (findings.length > 0) await keep(history, findings);
    await this.clear();
    return { history, findings };
  }

  /** The history that {@link judge} checks; the servers stay as they are. */
  async recall(
    deaths: Deaths,
    limits: Limits,
    forced: (lock: string) => boolean = () => false,
  ): Promise<History> {
    const asks = deaths.size > 0 ? await this.#visit(deaths, limits) : [];
    const sightings = await this.#sight();
    const client = this.witness.connect();
    const [sections, counters, stalls, lag] = await Promise.all([
      readSections(client),
      readCounters(client),
      readStalls(client),
      readLag(client),
    ]);
    const thrown = new Set(sections.map(({ lock }) => lock).filter(forced));
    const left = new Map(this.#left);
    return { sections, deaths, left, counters, sightings, asks, stalls, lag, forced: thrown };
  }

  /** Called after each test, however it ended, so that nothing of it disturbs the next one. */
  async reset(): Promise<void> {
    if (this.#live.size === 0) return;
    await this.#killAll();
    await this.clear();
  }

  async clear(): Promise<void> {
    const servers = [...(await this.site.masters()), this.witness];
    await Promise.all(servers.map((server) => server.call("FLUSHALL")));
    this.#left.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#killAll();
    await Promise.all([this.site.stop(), this.witness.stop()]);
  }

  /**
   * Waits until the locks of dead processes have expired. The next waiter of a fair lock drops dead waiters from its
   * queue, and this function makes such calls; it returns those that are not served.
   */
  async #visit(deaths: Deaths, { lease, margin, absence = 0 }: Limits): Promise<Ask[]> {
    const last = [...deaths.values()].reduce((a, b) => (a > b ? a : b), 0n);
    const lapsed = Number(last / 1_000_000n) + Math.max(lease, absence);
    const left = (least: number) =>
      Math.max(least, lapsed + margin - Number(process.hrtime.bigint() / 1_000_000n));
    const isLine = ({ lock, key }: Sighting) => key !== undefined && FAIR.test(lock);
    const isOver = async () => (await this.#sight()).every(isLine);
    await until("the locks of the dead have lapsed", isOver, { timeout: left(100), every: 50 }).catch(() => {
      // The checker says which locks, and for how long.
    });
    const lines = new Set((await this.#sight()).filter(isLine).map(({ lock }) => lock));
    const client = new LockClient(this.site.connect(), UNHURRIED);
    await client.ready();
    const askedAt = process.hrtime.bigint();
    const visits = await Promise.all(
      [...lines].map(async (lock) => {
        const hold = await client.getFairLock(lock).tryLock(left(SHORTEST_VISIT));
        await hold?.unlock();
        return hold ? [] : [{ lock, askedAt, until: process.hrtime.bigint() }];
      }),
    );
    await client.close();
    return visits.flat();
  }

  /** What the servers have of the locks. */
  async #sight(): Promise<Sighting[]> {
    const servers = await this.#servers();
    const seen = servers.map(async (server) => sight(server, await keysOf(server, NAMES)));
    return (await Promise.all(seen)).flat();
  }

  async #servers(): Promise<Redis[]> {
    const masters = await this.site.masters();
    return masters.map((master) => {
      const server = this.#clients.get(master) ?? master.connect();
      this.#clients.set(master, server);
      return server;
    });
  }

  #ask(what: "figures" | "stop"): Promise<WorkerFigures[]> {
    return Promise.all(this.members.map(({ worker }) => worker.request<WorkerFigures>(what)));
  }
}

/** Writes the history to a file, because a violation may take hours to come again. */
export async function keep(history: History, findings: readonly Finding[]): Promise<void> {
  const file = join(tmpdir(), `holdfast-history-${process.pid}-${Date.now()}.json`);
  const plain = (_: string, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    return value instanceof Map || value instanceof Set ? [...value] : value;
  };
  await writeFile(file, JSON.stringify({ findings, ...history }, plain));
  console.log(`exclusion: the history of ${findings.length} violations is in ${file}`);
}

export function sum(all: readonly WorkerFigures[]): Figures {
  const counts: Record<string, number> = {};
  for (const { errors: _, ...figures } of all) {
    for (const [name, count] of Object.entries(figures)) counts[name] = (counts[name] ?? 0) + count;
  }
  return { counts, errors: all.flatMap(({ errors }) => errors) };
}
