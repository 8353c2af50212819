/**
 * The place where planted locks are tried: processes that want one lock, a proxy before each, and the checker's
 * verdict.
 */
import {
  type FaultProxy,
  forFile,
  type RedisServer,
  startProxy,
  startRedis,
  startWorker,
  until,
  type Worker,
} from "../support/index.js";
import { type Ask, check, type Finding, type Limits } from "./checker.js";
import { keysOf, readCounters, readSections, sight } from "./history.js";

export interface Servers {
  readonly locks: RedisServer;
  readonly witness: RedisServer;
}

export async function startServers(): Promise<Servers> {
  const [locks, witness] = await Promise.all([forFile(startRedis()), forFile(startRedis())]);
  return { locks, witness };
}

/** The lock that is tried: a module of planted/, and its options. */
export interface Planted {
  readonly planted: string;
  readonly options: { readonly watchdogTimeout: number } & Readonly<Record<string, unknown>>;
}

export type Side = "only" | "read" | "write";

export interface TakeOptions {
  readonly side?: Side;
  /** A stay; the owner of that stay makes the call. */
  readonly within?: string | null;
  /** Whether the test gives the call up: then it proves nothing that the call got nothing. */
  readonly fleeting?: boolean;
}

/** One lock, and all that happens to it. */
export class Scene {
  readonly lock: string;
  readonly servers: Servers;
  readonly planted: Planted;
  readonly deaths: Map<string, bigint> = new Map();
  readonly asks: Ask[] = [];
  readonly #workers = new Map<string, Worker>();
  readonly #proxies: FaultProxy[] = [];

  constructor(servers: Servers, planted: Planted, lock: string) {
    this.servers = servers;
    this.planted = planted;
    this.lock = lock;
  }

  async enter(letter: string, options: object = {}): Promise<Actor> {
    const { locks, witness } = this.servers;
    const proxy = await startProxy(locks);
    this.#proxies.push(proxy);
    const worker = await startWorker(new URL("planted-worker.mjs", import.meta.url));
    const name = `${this.lock}-${letter}`;
    this.#workers.set(name, worker);
    const told = { ...this.planted, options: { ...this.planted.options, ...options } };
    const ports = { lockPort: proxy.port, witnessPort: witness.port };
    await worker.request("connect", { ...told, ...ports, name });
    return new Actor(this, name, worker, proxy);
  }

  /** Resolves when the lease on the server is over. */
  async untilLapsed(): Promise<void> {
    const server = this.servers.locks.connect();
    await until(`${this.lock} has lapsed`, async () => (await server.exists(this.lock)) === 0, {
      timeout: 20_000,
    });
  }

  async judge(limits: Limits): Promise<Finding[]> {
    const server = this.servers.locks.connect();
    const register = this.servers.witness.connect();
    const mine = ({ lock }: { lock: string }) => lock === this.lock;
    const keys = await keysOf(server, new RegExp(`(?<=^|\\{)${this.lock}(?=$|\\})`));
    const sightings = await sight(server, keys);
    const sections = (await readSections(register)).filter(mine);
    const counters = (await readCounters(register)).filter(mine);
    const { deaths, asks } = this;
    return check({ sections, deaths, counters, sightings, asks }, limits);
  }

  async end(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((worker) => worker.kill()));
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
  }
}

/** One process of a scene. */
export class Actor {
  readonly proxy: FaultProxy;
  readonly worker: Worker;
  readonly #scene: Scene;
  readonly #name: string;

  constructor(scene: Scene, name: string, worker: Worker, proxy: FaultProxy) {
    this.#scene = scene;
    this.#name = name;
    this.worker = worker;
    this.proxy = proxy;
  }

  async take(wait: number, lease: number, options: TakeOptions = {}): Promise<string | null> {
    const { side = "only", within, fleeting = false } = options;
    const askedAt = process.hrtime.bigint();
    const { lock, asks } = this.#scene;
    const stay = await this.worker.request<string | null>("take", { lock, wait, lease, side, within });
    if (stay === null && !fleeting) {
      asks.push({ lock, shared: side === "read", askedAt, until: process.hrtime.bigint() });
    }
    return stay;
  }

  /**
   * Like {@link take}, and resolves when the call is in the queue; `given` ends the call and gives its hold back. A
   * waiter tries once more after it has subscribed; from then on it misses no wake-up.
   */
  async queue(wait: number, lease: number, options: TakeOptions = {}): Promise<Queued> {
    const waiting = this.worker.next("waiting");
    const taking = this.take(wait, lease, options);
    taking.catch(() => {}); // the process may be killed
    await Promise.race([waiting, taking]);
    const { lock } = this.#scene;
    const looks = () =>
      this.proxy.count((command) => /^EVAL/.test(command[0] ?? "") && command.includes(lock));
    const before = looks();
    await until("it has looked once more", () => looks() > before, { timeout: 1_000 }).catch(() => {
      // The call tried again before the test heard that it waits; or it has the lock, and needs no try.
    });
    return { given: async () => this.give(await taking) };
  }

  /** Aborts the last call. */
  async giveUp(): Promise<void> {
    await this.worker.request("giveUp");
  }

  async give(stay: string | null): Promise<void> {
    if (stay !== null) await this.worker.request("give", stay);
  }

  /** The owner of a stay takes one more hold. */
  async nest(stay: string | null, { side, lease }: { side: Side; lease: number }): Promise<void> {
    await this.worker.request("nest", { stay, side, lease });
  }

  /** Gives back the last nested hold. */
  async unnest(stay: string | null): Promise<void> {
    await this.worker.request("unnest", stay);
  }

  /** The owner of a write stay goes on as a reader. Resolves with the read stay. */
  downgrade(stay: string | null, lease: number): Promise<string> {
    return this.worker.request("downgrade", { stay, lease });
  }

  kill(): Promise<unknown> {
    this.#scene.deaths.set(this.#name, process.hrtime.bigint());
    return this.worker.kill();
  }
}

/** A call that was in the queue. */
export interface Queued {
  /** Resolves when the call is over and its hold, if any, was given back. */
  given(): Promise<void>;
}
