/**
 * All kinds of locks at work on one topology under random faults. A round has faults, then a quiet time in which every
 * waiter must be served; then the checkers judge the journals that the witness keeps. The witness is a server that no
 * fault touches.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Crowd, type CrowdPart } from "../exclusion/crowd.js";
import { Fleet, type Part } from "../exclusion/fleet.js";
import { playRounds } from "../exclusion/latch-rounds.js";
import type { Site } from "../exclusion/sites.js";
import { type RedisServer, startRedis, type WorkerOptions } from "../support/index.js";
import { type Company, INJECTIONS, type Scenery } from "./faults.js";
import { BOUND, crowdParts, hotNames, lockPart, QUIET } from "./parts.js";
import { type Planned, planRound, type Topology } from "./plan.js";
import { SITES } from "./sites.js";
import { Tape } from "./tape.js";
import { Ticker } from "./ticker.js";
import { Verdict } from "./verdict.js";
import { Yardstick } from "./yardstick.js";

export interface SoakOptions {
  readonly topology: Topology;
  readonly kinds: readonly string[];
  readonly seconds: number;
  readonly seed: number;
  /** How the worker processes of the locks are started. */
  readonly worker?: WorkerOptions;
}

/** Milliseconds of a round, its quiet time included. */
const ROUND = 60_000;
/** The largest share of a round that is quiet. */
const QUIET_SHARE = 0.4;
/** Milliseconds within which all tasks must end. */
const STOPS_WITHIN = 120_000;
/**
 * A hand-over takes this many steps of processes and servers. On a machine that is too busy each step may take as long
 * as the slowest answer of the witness.
 */
export const STEPS = 20;

/** How many rounds a soak has, the length of each, and how much of it has faults; both in milliseconds. */
export function roundsOf(seconds: number): {
  readonly count: number;
  readonly ms: number;
  readonly faulty: number;
} {
  const count = Math.max(1, Math.round((seconds * 1_000) / ROUND));
  const ms = (seconds * 1_000) / count;
  return { count, ms, faulty: ms - Math.min(QUIET, QUIET_SHARE * ms) };
}

export class Soak {
  readonly tape: Tape = new Tape();
  readonly verdict: Verdict = new Verdict(this.tape);
  /** Longest answer time of the witness, in milliseconds. */
  slowest = 0;
  readonly #options: SoakOptions;
  readonly #part: Part | undefined;
  readonly #parts: readonly CrowdPart[];
  readonly #site: Site;
  readonly #witness: RedisServer;
  readonly #fleet: Fleet;
  readonly #ticker: Ticker;
  readonly #yardstick: Yardstick;

  private constructor(options: SoakOptions, site: Site, witness: RedisServer) {
    this.#options = options;
    this.#site = site;
    this.#witness = witness;
    this.#part = lockPart(options.kinds, options.worker ?? {});
    this.#parts = crowdParts(options.kinds);
    this.#fleet = new Fleet(site, witness);
    this.#ticker = new Ticker(witness.connect());
    this.#yardstick = new Yardstick(witness.connect());
  }

  static async prepare(options: SoakOptions): Promise<Soak> {
    const [site, witness] = await Promise.all([SITES[options.topology](), startRedis()]);
    return new Soak(options, site, witness);
  }

  /** Resolves when all rounds are judged; ends early after a round with errors. */
  async run(tell: (line: string) => void): Promise<void> {
    const { count } = roundsOf(this.#options.seconds);
    const status = () =>
      this.#status().then(tell, () => {
        // The witness cannot be reached any more because the soak is over.
      });
    const timer = setInterval(() => void status(), 1_000);
    try {
      const { verdict } = this;
      for (verdict.round = 1; verdict.round <= count && verdict.errors.length === 0; verdict.round++) {
        await this.#playRound().catch((error: unknown) => verdict.fail("the round", error));
      }
    } finally {
      clearInterval(timer);
    }
  }

  async end(): Promise<void> {
    this.#yardstick.stop();
    await this.#fleet[Symbol.asyncDispose]();
  }

  async #status(): Promise<string> {
    const { acquisitions, longestWait } = await this.#ticker.read();
    const { faults } = this.tape;
    const seconds = Math.round(this.tape.at() / 1_000);
    return (
      `${String(seconds).padStart(4)} s  round ${this.verdict.round}  ${acquisitions} acquisitions  ${faults.length} faults ` +
      `(last: ${faults.at(-1)?.name ?? "none"})  ${this.verdict.violations.length} violations  longest wait ${Math.round(longestWait)} ms`
    );
  }

  async #playRound(): Promise<void> {
    const { topology, seed, seconds, kinds } = this.#options;
    const { ms, faulty } = roundsOf(seconds);
    const deaths = new Map<string, bigint>();
    const servers = { site: this.#site, witness: this.#witness };
    const part = this.#part;
    const [crowds] = await Promise.all([
      Promise.all(this.#parts.map((each) => Crowd.gather(each, servers))),
      part ? this.#fleet.man(part) : undefined,
    ]);
    this.#yardstick.take(); // answer times before the round do not count
    const companies = crowds.map((crowd) => companyOf(crowd));
    if (part) companies.push(fleetCompany(this.#fleet, part, deaths));
    const scenery = { site: this.#site, companies, locks: hotNames(kinds) };
    const plan = planRound(seed, this.verdict.round, topology, faulty);
    const latches = crowds
      .filter((crowd) => crowd.part.kind === "latch")
      .map((crowd) => playRounds(crowd, { lanes: 2, ms: ms - BOUND, slack: () => this.#slack }));
    const harming = (["clients", "servers"] as const).map((lane) =>
      this.#harm(
        plan.filter((each) => each.lane === lane),
        scenery,
        faulty,
      ),
    );
    await Promise.all(harming);
    await pause(ms - faulty);
    const stopped = await this.#inTime(
      Promise.all([
        Promise.all(latches),
        part ? this.#fleet.stop() : undefined,
        ...crowds.map((c) => c.finish()),
      ]),
    );
    if (stopped) {
      const [rounds, ...figures] = stopped;
      const { verdict } = this;
      verdict.noteFigures(figures);
      const outages = this.tape.takeOutages();
      const slack = this.#takeSlack();
      if (part) await verdict.judgeLocks(this.#fleet, { deaths, outages, slack });
      for (const crowd of crowds) await verdict.judgeCrowd(crowd, { outages, slack });
      for (const each of rounds) verdict.judgeLatches(each);
    }
    this.tape.closeRound();
    await this.#ticker.read();
    await Promise.all(crowds.map((crowd) => crowd.end()));
    await this.#fleet.reset();
    await this.#fleet.clear();
    this.#ticker.restart();
  }

  /**
   * Injects the faults of one lane one after the other, each at its time; starts none after the end of the faulty time.
   */
  async #harm(plan: readonly Planned[], scenery: Scenery, faulty: number): Promise<void> {
    const begin = performance.now();
    for (const planned of plan) {
      await pause(Math.max(0, begin + planned.at - performance.now()));
      if (performance.now() - begin > faulty) return;
      const { name } = planned;
      await this.tape
        .strike(name, () => (INJECTIONS[name] as (typeof INJECTIONS)[string])(planned, scenery))
        .catch((error: unknown) => this.verdict.fail(name, error));
    }
  }

  /** Undefined if some tasks do not end in time: they are stuck. */
  async #inTime<T>(stopping: Promise<T>): Promise<T | undefined> {
    const limit = new AbortController();
    const late = pause(STOPS_WITHIN, undefined, { signal: limit.signal }).catch(() => undefined);
    const stopped = await Promise.race([stopping, late]);
    limit.abort();
    if (stopped) return stopped;
    stopping.catch(() => {}); // rejects when its processes are killed
    this.verdict.errors.push(
      `some tasks did not end within ${STOPS_WITHIN} ms: they wait for what nobody holds`,
    );
    return undefined;
  }

  /** Milliseconds that everything may have taken longer in this round. */
  get #slack(): number {
    return Math.round(STEPS * this.#yardstick.longest);
  }

  #takeSlack(): number {
    const slack = this.#slack;
    this.slowest = Math.max(this.slowest, this.#yardstick.take());
    return slack;
  }
}

/**
 * The processes of a crowd. They are killed only for permits: a death would lose permits of a semaphore, or a latch's
 * counts.
 */
function companyOf(crowd: Crowd): Company {
  const isMortal = crowd.part.kind === "permits";
  return {
    get members() {
      return crowd.members;
    },
    replace: isMortal ? (member) => crowd.replace(member) : undefined,
  };
}

function fleetCompany(fleet: Fleet, part: Part, deaths: Map<string, bigint>): Company {
  return {
    get members() {
      return fleet.members;
    },
    replace: (member) => fleet.replaceOne(part, deaths, member),
  };
}
