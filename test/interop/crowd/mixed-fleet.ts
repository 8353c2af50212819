/**
 * Processes of both sides on one Redis: Node processes that run the worker of test/fleet, and JVMs that do
 * the same with Redisson. Its checker judges one history of both sides.
 */
import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { LIMITS as FLEET, TERMS } from "../../fleet/campaign.js";
import { check, type Finding, type History, type Limits } from "../../fleet/checker.js";
import { type Figures, Fleet, type Crew as NodeCrew } from "../../fleet/fleet.js";
import { groupByLock, kindOf, MS } from "../../fleet/history.js";
import { swapsOf } from "../../fleet/planted.js";
import { independent } from "../../fleet/sites.js";
import { isAtLeast, type RedisServer } from "../../support/index.js";
import type { Built } from "../build.js";
import { JavaClient } from "../java.js";
import { Jvm } from "../jvm.js";
import { ENTER, LEAVE, readJava } from "./java-journal.js";

export interface Crew {
  readonly nodes: number;
  readonly jvms: number;
  /** The tasks of each process, on both sides. */
  readonly tasks: { coolTasks: number; cool: number; hotTasks: number; hot: number };
  readonly kinds: readonly string[];
  /** The mistake that the Node processes make: see test/simulation/planted.lua. */
  readonly nodePlanted?: string;
  /** The mistake that the JVMs make. */
  readonly planted?: string;
}

const WATCHDOG = 3_000;
const POLL_CAP = 600;
/** Not longer than the watchdog's lease, to which Java's renewal sets the TTL that readers of both sides share. */
const LEASE = [1_200, 1_800];
const SAFE = 600;
/**
 * For how long a place in a fair lock's queue lasts: a dead Java waiter holds up the waiters behind it for this long.
 */
const FAIR_WAIT = 2_000;
/**
 * Threads of a JVM that take fair locks, for each heat; few, because behind a dead waiter Java's threads ask without a
 * pause.
 */
const IN_LINE = 1;

/**
 * A Java waiter can miss its wake-up: another thread of its process took it, or a spin lock sent none. Then it sleeps
 * for the TTL that it saw. So does the reader behind a writer that goes on as a reader.
 */
const MARGIN = 3_000;
const LIMITS: Limits = { ...FLEET, patience: 2 * WATCHDOG + MARGIN, absence: WATCHDOG };
const LIMITS_OF: Readonly<Record<string, Limits>> = {
  // Each place lasts for its full time, even if places before it are dropped early; a busy machine adds places. A Java waiter
  // whose place has lapsed comes in last, and sleeps until the last place before it would lapse: 13 places were seen.
  fair: { ...LIMITS, absence: 8 * FAIR_WAIT, patience: LIMITS.patience + 13 * FAIR_WAIT },
  // Java's write leases add up. A Node writer that died in the queue keeps Node's readers out for three polls.
  readwrite: { ...LIMITS, absence: Math.max(2 * WATCHDOG, 4 * POLL_CAP) },
};

/** The time after a death in which all calls may have to wait. */
const QUIET = 12 * FAIR_WAIT + LIMITS.patience;

export interface Outcome {
  readonly history: History;
  readonly findings: readonly Finding[];
  /** Keys that would stay for ever, without the counters of tokens. */
  readonly eternal: readonly string[];
}

export class MixedFleet {
  readonly #built: Built;
  readonly #crew: Crew;
  readonly #fleet: Fleet;
  readonly #nodes: NodeCrew;
  readonly #jvms = new Map<string, { jvm: Jvm; locks: JavaClient }>();
  #started = 0;

  private constructor(built: Built, crew: Crew, fleet: Fleet) {
    this.#built = built;
    this.#crew = crew;
    this.#fleet = fleet;
    const { nodes: processes, kinds, tasks } = crew;
    this.#nodes = { processes, kinds, tasks: tasks.coolTasks + tasks.hotTasks, mortal: true };
  }

  static async launch(built: Built, crew: Crew): Promise<MixedFleet> {
    const options = { watchdogTimeout: WATCHDOG, fairWaitTimeout: FAIR_WAIT, pollCap: POLL_CAP };
    const config = { ...TERMS.config, lease: LEASE, safe: SAFE, options, infix: "hot-" };
    const swaps = crew.nodePlanted ? swapsOf(crew.nodePlanted) : [];
    const terms = { ...TERMS, names: crew.tasks.hot, config, swaps };
    return new MixedFleet(built, crew, await Fleet.launch(independent(1, false), terms));
  }

  async man(): Promise<void> {
    await this.#fleet.man([this.#nodes]);
    await Promise.all(Array.from({ length: this.#crew.jvms }, () => this.#addJvm()));
  }

  /** Kills a process of either side now and then, and starts another one. */
  async harass(ms: number): Promise<void> {
    const end = performance.now() + ms;
    const { nodes, jvms } = this.#crew;
    while (performance.now() < end) {
      await pause(200 + randomInt(1_500));
      if (randomInt(nodes + jvms) < nodes) await this.#replaceNode();
      else await this.#replaceJvm();
    }
    // On a slow machine there may have been no kill on one side, so this makes up for it.
    const isSpared = (side: string) => ![...this.#fleet.deaths.keys()].some((name) => name.startsWith(side));
    if (isSpared("p")) await this.#replaceNode();
    if (isSpared("j")) await this.#replaceJvm();
  }

  /** Lets all tasks end, and closes all clients. */
  async stop(): Promise<Figures> {
    const all = [...this.#jvms.values()];
    const [node, java] = await Promise.all([
      this.#fleet.stop(),
      Promise.all(
        all.map(({ locks }) => locks.call<Record<string, number> & { errors: string[] }>({ op: "stopSoak" })),
      ),
    ]);
    await Promise.all(all.map(({ locks }) => locks.close()));
    await this.#killJvms();
    const counts: Record<string, number> = { ...node.counts };
    for (const { errors: _, ...figures } of java) {
      for (const [name, count] of Object.entries(figures))
        counts[`java ${name}`] = (counts[`java ${name}`] ?? 0) + count;
    }
    return { counts, errors: [...node.errors, ...java.flatMap(({ errors }) => errors)] };
  }

  async judge(): Promise<Outcome> {
    const recalled = await this.#fleet.recall([this.#nodes], QUIET);
    const stays = [...recalled.stays, ...(await readJava(this.#fleet.witness))].map(withoutPlace);
    const history = { ...recalled, stays };
    const kinds = new Set(stays.map(({ lock }) => kindOf(lock)));
    const findings = [...kinds].flatMap((kind) => check(only(kind, history), LIMITS_OF[kind] ?? LIMITS));
    const server = this.#fleet.site.connect();
    const keys = (await server.keys("*")).filter((key) => !key.startsWith("redisson_lock_token:"));
    const ttls = await Promise.all(keys.map((key) => server.pttl(key)));
    if (findings.length > 0) console.log(`interop: the journals are in ${this.#fleet.keep()}`);
    await this.#fleet.clear();
    return { history, findings, eternal: keys.filter((_, i) => ttls[i] === -1) };
  }

  async end(): Promise<void> {
    await Promise.all([this.#killJvms(), this.#fleet[Symbol.asyncDispose]()]);
  }

  async #addJvm(): Promise<void> {
    const name = `j${++this.#started}`;
    const jvm = new Jvm(this.#built);
    const { site, witness: register } = this.#fleet;
    const [server] = (await site.masters()) as [RedisServer];
    const options = { watchdog: WATCHDOG, fairWait: FAIR_WAIT };
    const locks = await JavaClient.connect(jvm, { url: server.url, ...options });
    const witness = await JavaClient.connect(jvm, {
      url: `redis://${register.options.host}:${register.options.port}`,
    });
    this.#jvms.set(name, { jvm, locks });
    const { tasks, kinds, planted } = this.#crew;
    // Before 4.4.0 a Java client that reads several locks renews the holds of only one.
    const longReads = isAtLeast(this.#built.version, "4.4.0") ? true : undefined;
    const config = {
      ...tasks,
      ...options,
      kinds,
      inLine: IN_LINE,
      lease: LEASE,
      safe: SAFE,
      longReads,
      planted,
    };
    const own = { name, seed: randomInt(2 ** 32), witness: witness.name, enter: ENTER, leave: LEAVE };
    await locks.call({ op: "soak", ...config, ...own });
  }

  async #replaceNode(): Promise<void> {
    const { members } = this.#fleet;
    await this.#fleet.replace(members[randomInt(members.length)] as (typeof members)[number]);
  }

  async #replaceJvm(): Promise<void> {
    const [name, { jvm }] = [...this.#jvms][randomInt(this.#jvms.size)] as [string, { jvm: Jvm }];
    this.#fleet.deaths.set(name, Number(process.hrtime.bigint()));
    this.#jvms.delete(name);
    await Promise.all([jvm.kill(), this.#addJvm()]);
  }

  async #killJvms(): Promise<void> {
    await Promise.all([...this.#jvms.values()].map(({ jvm }) => jvm.kill()));
    this.#jvms.clear();
  }
}

/**
 * A place in a queue promises nothing where Redisson shares the lock. Its readers overtake waiting writers, and in a
 * fair lock's queue it drops waiters that live longer than it has foreseen.
 */
function withoutPlace<T extends { place: unknown }>(section: T): T & { place: undefined } {
  return { ...section, place: undefined };
}

function only(kind: string, history: History): History {
  const isOf = ({ lock }: { lock: string }) => kindOf(lock) === kind;
  const { deaths, stays, counters = [], asks = [], remains = [], doubtful } = history;
  return {
    deaths,
    ...(doubtful ? { doubtful } : {}),
    stays: stays.filter(isOf),
    counters: counters.filter(isOf),
    asks: asks.filter(isOf),
    // Java's scripts drop a dead waiter without touching the key of those alive, which ends by its TTL.
    remains: remains.filter((each) => isOf(each) && !each.key.startsWith("holdfast_alive:")),
  };
}

/** The stays of each side and kind, the renewed ones, and how often a lock went from one side to the other. */
export function mixOf({ stays: all }: History): Record<string, number> {
  const counts: Record<string, number> = {};
  const count = (what: string) => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
  for (const [lock, stays] of groupByLock(all)) {
    let last: string | undefined;
    const entered = [...stays].sort((a, b) => a.enteredAt - b.enteredAt);
    for (const { process, renewed, enteredAt, leftAt = enteredAt } of entered) {
      const side = process.startsWith("j") ? "Java" : "Node";
      if (renewed && leftAt - enteredAt > WATCHDOG * MS) count("renewed stays");
      count(`${side} ${kindOf(lock)}`);
      if (last !== undefined && last !== side) count("changes of side");
      last = side;
    }
  }
  return counts;
}
