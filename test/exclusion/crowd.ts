/**
 * Processes that run crowd-worker.mjs on the servers of a site, with a witness on another server. Each process is
 * behind proxies of its own that lose replies and cut connections. Also the ways to harm them, and the verdict on what
 * they did.
 */
import { randomInt } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  type Fault,
  type FaultProxy,
  type Matcher,
  type RedisServer,
  startWorker,
  until,
  type Worker,
} from "../support/index.js";
import {
  type CrowdFinding,
  type CrowdHistory,
  type CrowdLimits,
  checkCrowd,
  type Rest,
} from "./crowd-checker.js";
import { countEntries, readCrowd, restOf, Scribe } from "./crowd-history.js";
import { type Figures, type Member, sum, type WorkerFigures } from "./fleet.js";
import type { Servers } from "./scene.js";
import { SingleSite, type Site } from "./sites.js";

export type CrowdKind = "semaphore" | "permits" | "latch";

export interface CrowdPart {
  readonly kind: CrowdKind;
  /** A prefix for the names of processes and semaphores, if several crowds share servers. */
  readonly prefix?: string;
  readonly processes: number;
  /** The number of semaphores or latches. */
  readonly locks: number;
  readonly limits: CrowdLimits;
  /** One script in this many loses its reply, and one in this many is lost itself. */
  readonly lossy: number;
  readonly config: object;
  readonly mutant?: string | undefined;
}

/** What is done to the processes; times in milliseconds. */
export interface Harm {
  readonly ms: number;
  /** The harm goes on until there were this many stays, and more than one loss: a slow machine takes longer for that. */
  readonly stays?: number;
  readonly kills: number;
  /** The longest pause; one pause in four is as long as `coma`. */
  readonly nap: number;
  readonly coma: number;
}

export interface CrowdServers {
  readonly site: Site;
  readonly witness: RedisServer;
}

/** One server for all permits, behind proxies. */
export function crowdServers({ locks, witness }: Servers): CrowdServers {
  return { site: new SingleSite(locks), witness };
}

export interface CrowdVerdict {
  readonly history: CrowdHistory;
  readonly findings: readonly CrowdFinding[];
  /** The most permits that the witness has seen out at the same time. */
  readonly most: number;
  /** The errors that the processes report of calls that went on in the background. */
  readonly errors: readonly string[];
}

interface CheckedMember extends Member {
  /** @throws if the process ended by itself */
  check(): void;
}

export class Crowd {
  readonly site: Site;
  readonly witness: RedisServer;
  readonly part: CrowdPart;
  readonly deaths: Map<string, bigint> = new Map();
  cuts = 0;
  stops = 0;
  readonly #live = new Map<string, CheckedMember>();
  readonly #faults: Fault[] = [];
  readonly #scribe: Scribe;
  #started = 0;

  constructor(part: CrowdPart, { site, witness }: CrowdServers) {
    this.part = part;
    this.site = site;
    this.witness = witness;
    this.#scribe = new Scribe(site.connect(), part.kind === "permits" ? this.names : []);
  }

  /** Starts the processes, after giving the semaphores their permits. */
  static async gather(part: CrowdPart, servers: CrowdServers): Promise<Crowd> {
    const crowd = new Crowd(part, servers);
    try {
      if (part.kind !== "latch") {
        const server = servers.site.connect();
        await Promise.all(crowd.names.map((name) => server.set(name, part.limits.permits)));
      }
      await Promise.all(Array.from({ length: part.processes }, () => crowd.add()));
      return crowd;
    } catch (error) {
      await crowd.end();
      throw error;
    }
  }

  get prefix(): string {
    return this.part.prefix ?? this.part.kind;
  }

  get names(): string[] {
    return Array.from({ length: this.part.locks }, (_, i) => `${this.prefix}-${i}`);
  }

  /** The number of replies and requests that were lost with their connection. */
  get lost(): number {
    return this.#faults.reduce((sum, { hits }) => sum + hits, 0);
  }

  get members(): Member[] {
    return [...this.#live.values()];
  }

  get workers(): Worker[] {
    return this.members.map(({ worker }) => worker);
  }

  /** The proxies between the processes and the servers. */
  get proxies(): FaultProxy[] {
    return this.members.flatMap(({ route }) => route.proxies);
  }

  async add(): Promise<void> {
    const { kind, config, lossy, mutant } = this.part;
    const name = `${this.prefix}-p${++this.#started}`;
    const route = await this.site.route();
    const worker = await startWorker(new URL("crowd-worker.mjs", import.meta.url));
    const servers = { where: route.where, witnessPort: this.witness.port };
    const seed = randomInt(2 ** 32);
    const told = { kind, locks: this.names, mutant, ...config, ...servers, name, seed };
    await worker.request("start", told).catch(async (error: unknown) => {
      await Promise.all([worker.kill(), ...route.proxies.map((proxy) => proxy.stop())]);
      throw error;
    });
    const unlucky: Matcher = ([verb = ""]) => /^EVAL(SHA)?$/.test(verb) && Math.random() * 2 * lossy < 1;
    const forever = Number.POSITIVE_INFINITY;
    for (const proxy of route.proxies)
      this.#faults.push(proxy.cutReplyOf(unlucky, forever), proxy.dropRequest(unlucky, forever));
    let ended = false;
    void worker.exited.then(() => {
      ended = true;
    });
    const check = () => {
      if (ended) throw new Error(`${name} ended by itself: ${worker.stderr}`);
    };
    this.#live.set(name, { name, worker, route, check });
  }

  /**
   * Stops, cuts off and kills processes at random moments for `ms`, and until `kills` were killed. At the end it goes
   * on until one process has died with permits, and stops one for as long as `coma`.
   */
  async harass({ ms, stays = 0, kills, nap, coma }: Harm): Promise<void> {
    const end = performance.now() + ms;
    const witness = this.witness.connect();
    const isEnough = async () =>
      stays === 0 || (this.lost > 1 && (await countEntries(witness, this.prefix)) >= stays);
    while (performance.now() < end || this.deaths.size < kills - 1 || !(await isEnough())) {
      await pause(randomInt(100));
      const member = this.#any();
      const dice = randomInt(4);
      if (dice === 0 && kills > 0) await this.replace(member);
      else if (dice === 1) {
        this.cuts++;
        for (const proxy of member.route.proxies) proxy.cut();
      } else if (dice > 1 && nap > 0) {
        await this.#stop(member, coma > 0 && randomInt(4) === 0 ? coma : randomInt(nap));
      }
    }
    let isOver = kills === 0;
    while (!isOver) {
      const member = this.#any();
      await this.replace(member);
      isOver = await this.#wasInside(member.name);
    }
    // This process lives on, so it can report.
    if (coma > 0) await this.#stop(this.#any(), coma);
  }

  /** Lets all tasks end. If a task is stuck, this lasts until the test's time is over. */
  async finish(): Promise<Figures> {
    const figures = sum(await this.#ask<WorkerFigures>("finish"));
    for (const fault of this.#faults) fault.cancel();
    return figures;
  }

  /**
   * The checked history of the witness. The permits must be free within the limits after the last death. A call that was
   * aborted or got no answer is undone in the background, so a permit counts as lost only when that work is done.
   */
  async judge(): Promise<CrowdVerdict> {
    const { limits } = this.part;
    const errors = (await this.#ask<string[]>("settle")).flat();
    const server = this.site.connect();
    const witness = this.witness.connect();
    const rests = () => Promise.all(this.names.map((name) => restOf(server, name)));
    const isQuiet = async () => (await rests()).every(({ acquired }) => acquired === 0);
    const timeout = limits.lease + limits.patience;
    await until("no permit is out", isQuiet, { timeout, every: 20 }).catch(() => {
      // The checker says which permits are out.
    });
    await this.#scribe.stop();
    // The numbers of the server, and those of the library: expired permits count as free in both.
    const { worker } = this.#any();
    const seen = [...(await rests()), ...(await worker.request<Rest[]>("rests"))];
    const read = await readCrowd(witness, this.prefix, this.#scribe.ends);
    const history: CrowdHistory = { ...read, deaths: this.deaths, rests: seen };
    const findings = checkCrowd(history, limits);
    const most = await Promise.all(this.names.map((name) => witness.get(`most:${name}`)));
    return { history, findings, errors, most: Math.max(...most.map(Number)) };
  }

  /** Closes the clients, and ends the processes. */
  async end(): Promise<void> {
    await this.#ask("close").catch(() => {
      // A failure has been found before.
    });
    await Promise.all(this.members.map((member) => this.#remove(member)));
    await this.#scribe.stop();
  }

  #any(): Member {
    const member = [...this.#live.values()][randomInt(this.#live.size)] as CheckedMember;
    member.check();
    return member;
  }

  async #stop({ worker }: Member, ms: number): Promise<void> {
    this.stops++;
    worker.pause();
    await pause(ms);
    worker.resume();
  }

  /** Whether the witness has seen a dead process enter and never leave. */
  async #wasInside(name: string): Promise<boolean> {
    const witness = this.witness.connect();
    const inside = await Promise.all(this.names.map((lock) => witness.hkeys(`inside:${lock}`)));
    return inside.flat().some((id) => id.startsWith(`${name}:`));
  }

  /** Kills a process by SIGKILL, and starts another one instead. */
  async replace(member: Member): Promise<void> {
    this.deaths.set(member.name, process.hrtime.bigint());
    await Promise.all([this.#remove(member), this.add()]);
  }

  async #remove({ name, worker, route }: Member): Promise<void> {
    this.#live.delete(name);
    await worker.kill();
    await Promise.all(route.proxies.map((proxy) => proxy.stop()));
  }

  #ask<T>(what: "finish" | "settle" | "close"): Promise<T[]> {
    return Promise.all(this.workers.map((worker) => worker.request<T>(what)));
  }
}

/** Writes the history to a file, because a violation may take hours to come again. Returns the file's path. */
export async function keepCrowd({ history, findings }: CrowdVerdict): Promise<string> {
  const file = join(tmpdir(), `holdfast-crowd-${process.pid}-${Date.now()}.json`);
  const plain = (_: string, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    return value instanceof Map ? [...value] : value;
  };
  await writeFile(file, JSON.stringify({ findings, ...history }, plain));
  return file;
}
