/**
 * Processes that run workload.mjs on one lock server, with a witness on another; the ways to harm them, and the
 * verdict on what they did.
 */
import { randomInt } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { LockClient } from "../../src/index.js";
import {
  type RedisServer,
  startRedis,
  startWorker,
  until,
  type Worker,
  type WorkerOptions,
} from "../support/index.js";
import { type Ask, check, type Finding, type History, type Limits } from "./checker.js";
import { keysOf, readCounters, readSections, sight } from "./history.js";
import type { Deaths } from "./sections.js";

/** How often things happened, by the workers' own count. */
export interface Figures {
  readonly counts: Readonly<Record<string, number>>;
  readonly errors: readonly string[];
}

export interface Part {
  readonly processes: number;
  readonly config: object;
  readonly limits: Limits;
  /** How its processes are started. */
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

/** Those of one process. */
export type WorkerFigures = Record<string, number> & { errors: string[] };

/** The locks of the workload, in the name of any of their keys. */
const NAMES = /[a-z]+-(hot|cool)-\d+/;

export class Fleet {
  readonly locks: RedisServer;
  readonly witness: RedisServer;
  readonly #live = new Map<string, Worker>();
  #started = 0;

  constructor(locks: RedisServer, witness: RedisServer) {
    this.locks = locks;
    this.witness = witness;
  }

  static async launch(): Promise<Fleet> {
    const [locks, witness] = await Promise.all([startRedis(), startRedis()]);
    return new Fleet(locks, witness);
  }

  async man(part: Part): Promise<void> {
    await Promise.all(Array.from({ length: part.processes }, () => this.add(part)));
  }

  async add(part: Part): Promise<void> {
    const name = `p${++this.#started}`;
    const worker = await startWorker(new URL("workload.mjs", import.meta.url), part.worker);
    this.#live.set(name, worker);
    const ports = { lockPort: this.locks.port, witnessPort: this.witness.port };
    await worker.request("start", { ...part.config, ...ports, name, seed: randomInt(2 ** 32) });
  }

  async figures(): Promise<Figures> {
    return sum(await this.#ask("figures"));
  }

  /** Lets all tasks come to their end. A task that is stuck makes this last until the test's time is over. */
  async stop(): Promise<Figures> {
    const stopped = await this.#ask("stop");
    await Promise.all([...this.#live.values()].map((worker) => worker.kill()));
    this.#live.clear();
    return sum(stopped);
  }

  /** Kills and pauses processes at random moments for so long, and until so many were killed. */
  async harass(part: Part, ms: number, kills: number, between = 200): Promise<Chaos> {
    const deaths = new Map<string, bigint>();
    let pauses = 0;
    const end = performance.now() + ms;
    while (performance.now() < end || deaths.size < kills) {
      if (randomInt(2) === 0) {
        const [, worker] = this.#anyone();
        pauses++;
        worker.pause();
        await pause(randomInt(300));
        worker.resume();
        await pause(randomInt(between));
        continue;
      }
      await pause(randomInt(between + 100));
      await this.replaceOne(part, deaths);
    }
    return { deaths, pauses };
  }

  /** Kills one, notes its death, and starts another. */
  async replaceOne(part: Part, deaths: Map<string, bigint>): Promise<void> {
    const [name, worker] = this.#anyone();
    deaths.set(name, process.hrtime.bigint());
    this.#live.delete(name);
    await Promise.all([worker.kill(), this.add(part)]);
  }

  #anyone(): [string, Worker] {
    return [...this.#live][randomInt(this.#live.size)] as [string, Worker];
  }

  /**
   * What the witness knows, checked; the locks must be free, and their lines empty, within the limits of the last
   * death. Both servers are empty after it.
   */
  async judge(
    deaths: Deaths,
    limits: Limits,
    forced: (lock: string) => boolean = () => false,
  ): Promise<Verdict> {
    const history = await this.recall(deaths, limits, forced);
    const findings = check(history, limits);
    if (findings.length > 0) await keep(history, findings);
    await this.clear();
    return { history, findings };
  }

  /** What {@link judge} judges; the servers stay as they are. */
  async recall(
    deaths: Deaths,
    limits: Limits,
    forced: (lock: string) => boolean = () => false,
  ): Promise<History> {
    const server = this.locks.connect();
    const asks = deaths.size > 0 ? await this.#visit(deaths, limits) : [];
    const sightings = await sight(server, await keysOf(server, NAMES));
    const client = this.witness.connect();
    const [sections, counters] = await Promise.all([readSections(client), readCounters(client)]);
    const thrown = new Set(sections.map(({ lock }) => lock).filter(forced));
    return { sections, deaths, counters, sightings, asks, forced: thrown };
  }

  /** After a test, however it ended: nothing of it may disturb the next one. */
  async reset(): Promise<void> {
    if (this.#live.size === 0) return;
    await Promise.all([...this.#live.values()].map((worker) => worker.kill()));
    this.#live.clear();
    await this.clear();
  }

  async clear(): Promise<void> {
    await Promise.all([this.locks, this.witness].map((server) => server.call("FLUSHALL")));
  }

  async end(): Promise<void> {
    await Promise.all([...this.#live.values()].map((worker) => worker.kill()));
    await Promise.all([this.locks.stop(), this.witness.stop()]);
  }

  /**
   * Waits until the locks of the dead have lapsed. Those who died in a fair lock's line are dropped by whoever comes
   * next, and this is who: calls that are not served are returned.
   */
  async #visit(deaths: Deaths, { lease, margin, absence = 0 }: Limits): Promise<Ask[]> {
    const server = this.locks.connect();
    const last = [...deaths.values()].reduce((a, b) => (a > b ? a : b), 0n);
    const lapsed = Number(last / 1_000_000n) + Math.max(lease, absence);
    const left = () => Math.max(100, lapsed + margin - Number(process.hrtime.bigint() / 1_000_000n));
    const fair = /^[^:]+:\{fair-/;
    const closed = async () => (await keysOf(server, NAMES)).filter(({ key }) => !fair.test(key));
    await until("the locks of the dead have lapsed", async () => (await closed()).length === 0, {
      timeout: left(),
      every: 50,
    }).catch(() => {
      // The checker says which ones, and for how long.
    });
    const lines = new Set((await keysOf(server, NAMES)).map(({ lock }) => lock));
    const client = new LockClient(server);
    const askedAt = process.hrtime.bigint();
    const visits = await Promise.all(
      [...lines].map(async (lock) => {
        const hold = await client.getFairLock(lock).tryLock(left());
        await hold?.unlock();
        return hold ? [] : [{ lock, askedAt, until: process.hrtime.bigint() }];
      }),
    );
    await client.close();
    return visits.flat();
  }

  #ask(what: "figures" | "stop"): Promise<WorkerFigures[]> {
    return Promise.all([...this.#live.values()].map((worker) => worker.request<WorkerFigures>(what)));
  }
}

/** A violation may take hours to come again. */
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

/** HOLDFAST_SOAK_MINUTES makes the tests with kills go on for so long, HOLDFAST_SOAK_KIND keeps them to one kind. */
export const SOAK: { readonly minutes: number; readonly kind: string | undefined } = {
  minutes: Number(process.env.HOLDFAST_SOAK_MINUTES ?? 0),
  kind: process.env.HOLDFAST_SOAK_KIND || undefined,
};
