/**
 * All kinds of locks work on one topology, in rounds. A round may begin with a calm time. Then it has faults at
 * random, until all tasks are told to end: every waiter must be served by then. Then the checkers judge what the
 * processes wrote down.
 */
import { setTimeout as pause } from "node:timers/promises";
import { check, type Finding, type Limits, patienceFor, stallsOf } from "./checker.js";
import { FAULTS, type Scenery } from "./faults.js";
import { AT_LAST, type Crew, Fleet, type Terms } from "./fleet.js";
import { type Journals, kindOf, MS, type Outage } from "./history.js";
import { searchAll } from "./linear.js";
import { type Planned, planRound } from "./plan.js";
import { swapsOf } from "./planted.js";
import { SITES, type Site, type Topology } from "./sites.js";
import { Yardstick } from "./yardstick.js";

/** Options of the clients, in milliseconds. */
const POLL_CAP = 600;
const WATCHDOG = 3_000;
/** Milliseconds that a busy machine may add to any measured time. */
const MARGIN = 4_000;
/** A waiter tries again when the lease ends or after `pollCap`, and at once after a reconnect. */
export const BOUND: number = POLL_CAP + MARGIN;
/** The next poll of any waiter removes a dead one from the line after three times `pollCap`. */
const ABSENCE = Math.max(4 * POLL_CAP, WATCHDOG);
/** Milliseconds after which waiters count as stuck for ever. For a MultiLock nothing shorter is promised. */
const DEAD_LOCK = 30_000;
/** Milliseconds of a round. */
const ROUND = 60_000;
/** Milliseconds of the calm time, at most. */
const CALM = 15_000;
/**
 * A hand-over takes this many steps of processes and servers. On a machine that is too busy each step may take as long
 * as the slowest answer of the witness.
 */
const STEPS = 20;

const PERMITS = 4;
const LARGEST = 3;
export const LIMITS: Limits = {
  patience: BOUND,
  groupPatience: DEAD_LOCK,
  absence: ABSENCE,
  permits: PERMITS,
  largest: LARGEST,
};

export const TERMS: Terms = {
  names: 4,
  permits: PERMITS,
  config: {
    lease: [1_500, 3_000],
    // They must outlast the answers of a majority on a slow machine: otherwise no RedLock would be granted.
    short: [600, 900],
    safe: 800,
    most: LARGEST,
    stay: 3,
    options: { watchdogTimeout: WATCHDOG, pollCap: POLL_CAP },
  },
};

const LOCKS = ["lock", "fair", "fenced", "forced", "readwrite", "unranked", "multi"];

/** The kinds that the topology supports. */
export function kindsOn(topology: Topology): readonly string[] {
  if (topology === "redlock") return ["red"];
  return [...LOCKS, ...(topology === "single" ? ["red"] : []), "permits", "semaphore"];
}

/** The processes for some kinds. */
function crewsOf(kinds: readonly string[]): Crew[] {
  const mortal = kinds.filter((kind) => kind !== "semaphore");
  const counted = kinds.filter((kind) => kind === "semaphore");
  return [
    { processes: 3, kinds: mortal, tasks: 2 + 2 * mortal.length, mortal: true },
    { processes: 2, kinds: counted, tasks: 3, mortal: false },
  ].filter((crew) => crew.kinds.length > 0);
}

export interface Options {
  readonly topology: Topology;
  readonly kinds?: readonly string[];
  readonly seconds: number;
  readonly seed: number;
  /** Visits of the calm time before the faults; a slow machine makes fewer of them. */
  readonly calm?: number;
  readonly planted?: string;
}

/** How many rounds there are, and the length of each in milliseconds. */
export function roundsOf(seconds: number): { readonly count: number; readonly ms: number } {
  const count = Math.max(1, Math.round((seconds * 1_000) / ROUND));
  return { count, ms: (seconds * 1_000) / count };
}

/** A rule that was broken. */
export type Violation = Finding & { readonly round: number };

/** An injected fault. Milliseconds since the start. */
export interface Struck {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Of one kind; waits in milliseconds. */
export interface KindFigures {
  stays: number;
  longestWait: number;
  /** The part of a wait in which the lock was free and no fault was under way. */
  longestStall: number;
  /** Operations that the search put in order, and names of which it was given up. */
  ordered: number;
  undecided: number;
}

export class Campaign {
  readonly options: Options;
  readonly kinds: readonly string[];
  readonly violations: Violation[] = [];
  /** Errors of the processes, and of the injections themselves. */
  readonly errors: string[] = [];
  /** What the processes counted themselves. */
  readonly counts: Record<string, number> = {};
  readonly faults: Struck[] = [];
  readonly figures: Record<string, KindFigures> = {};
  /** Number of the current round. */
  round = 0;
  /** Milliseconds of the longest answer of the witness. */
  slowest = 0;
  readonly #start = performance.now();
  readonly #fleet: Fleet;
  readonly #yardstick: Yardstick;
  readonly #crews: readonly Crew[];
  #outages: Outage[] = [];

  private constructor(options: Options, fleet: Fleet) {
    this.options = options;
    this.kinds = options.kinds ?? kindsOn(options.topology);
    this.#fleet = fleet;
    this.#crews = crewsOf(this.kinds);
    this.#yardstick = new Yardstick(fleet.witness);
  }

  static async prepare(options: Options): Promise<Campaign> {
    const terms = options.planted ? { ...TERMS, swaps: swapsOf(options.planted) } : TERMS;
    const site: Promise<Site> = SITES[options.topology]();
    return new Campaign(options, await Fleet.launch(site, terms));
  }

  get acquisitions(): number {
    return Object.values(this.figures).reduce((all, { stays }) => all + stays, 0);
  }

  get seconds(): number {
    return Math.round((performance.now() - this.#start) / 1_000);
  }

  /** Resolves when all rounds are judged; ends early after a round with errors. */
  async run(): Promise<this> {
    const { count } = roundsOf(this.options.seconds);
    for (this.round = 1; this.round <= count && this.errors.length === 0; this.round++) {
      await this.#playRound().catch((error: unknown) => this.#fail("the round", error));
    }
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#yardstick.stop();
    await this.#fleet[Symbol.asyncDispose]();
  }

  /** What happened so far, in one line. */
  get status(): string {
    const { faults, violations } = this;
    return (
      `${String(this.seconds).padStart(4)} s  round ${this.round}  ${this.acquisitions} acquisitions  ` +
      `${faults.length} faults (last: ${faults.at(-1)?.name ?? "none"})  ${violations.length} violations`
    );
  }

  async #playRound(): Promise<void> {
    const { topology, seed, seconds, calm = 0 } = this.options;
    const { ms } = roundsOf(seconds);
    const fleet = this.#fleet;
    await fleet.man(this.#crews);
    this.#yardstick.take(); // answers before the round do not count
    if (calm > 0)
      await fleet.untilVisited(calm, CALM).catch(() => {
        // What was done is judged.
      });
    const names = this.kinds.flatMap((kind) => [`${kind}-0`, `${kind}-1`]);
    const scenery = { fleet, locks: names };
    const plan = planRound(seed, this.round, topology, ms);
    const lanes = ["clients", "servers"] as const;
    await Promise.all(
      lanes.map((lane) =>
        this.#harm(
          plan.filter((each) => each.lane === lane),
          scenery,
          ms,
        ),
      ),
    );
    if (await this.#stop()) await this.#judge();
    await fleet.clear();
  }

  /** Injects faults one after the other, each at its time; starts none after the end of the round. */
  async #harm(plan: readonly Planned[], scenery: Scenery, ms: number): Promise<void> {
    const begin = performance.now();
    for (const planned of plan) {
      await pause(Math.max(0, begin + planned.at - performance.now()));
      if (performance.now() - begin > ms) return;
      const { name } = planned;
      const from = Number(process.hrtime.bigint());
      const at = performance.now() - this.#start;
      const fault = FAULTS.find((each) => each.name === name);
      await fault?.inject(planned, scenery).catch((error: unknown) => this.#fail(name, error));
      this.#outages.push({ from, until: Number(process.hrtime.bigint()) });
      this.faults.push({ name, from: at, to: performance.now() - this.#start });
    }
  }

  /** Ends all tasks; false if some do not end in time: they are stuck. */
  async #stop(): Promise<boolean> {
    const limit = new AbortController();
    const late = pause(AT_LAST, undefined, { signal: limit.signal }).catch(() => undefined);
    const stopping = this.#fleet.stop();
    const stopped = await Promise.race([stopping, late]);
    limit.abort();
    if (!stopped) {
      stopping.catch(() => {}); // rejects when its processes are killed
      const pending = await this.#fleet.pending();
      this.#fail("the end", `some tasks did not end within ${AT_LAST} ms:\n${pending}`);
      return false;
    }
    this.errors.push(...stopped.errors);
    for (const [name, count] of Object.entries(stopped.counts))
      this.counts[name] = (this.counts[name] ?? 0) + count;
    return true;
  }

  async #judge(): Promise<void> {
    const slack = STEPS * this.#yardstick.longest;
    this.slowest = Math.max(this.slowest, this.#yardstick.take());
    const limits = { ...LIMITS, patience: LIMITS.patience + slack, groupPatience: DEAD_LOCK + slack };
    const recalled = await this.#fleet.recall(this.#crews, limits.absence + limits.patience);
    const history = { ...recalled, outages: this.#outages };
    this.#outages = [];
    const found = [...check(history, limits)];
    this.#noteFigures(recalled);
    for (const { lock, waited } of stallsOf(history, limits)) {
      if (patienceFor(lock, limits) === limits.patience)
        this.#of(lock).longestStall = Math.max(this.#of(lock).longestStall, waited / MS);
    }
    for (const [lock, verdict] of searchAll(recalled, PERMITS)) {
      if (verdict.linearizable === undefined) this.#of(lock).undecided++;
      else if (verdict.linearizable) this.#of(lock).ordered += verdict.states;
      else {
        const { refuted, longest } = verdict;
        const detail = `no order explains the answer to ${JSON.stringify(refuted, plain)} after ${longest.length} others`;
        found.push({ kind: "order", lock, detail });
      }
    }
    this.violations.push(...found.map((finding) => ({ ...finding, round: this.round })));
    if (found.length > 0)
      console.log(`fleet: the journals of ${found.length} violations are in ${this.#fleet.keep()}`);
  }

  #noteFigures({ stays }: Journals): void {
    for (const { lock, askedAt, enteredAt } of stays) {
      const figures = this.#of(lock);
      figures.stays++;
      figures.longestWait = Math.max(figures.longestWait, (enteredAt - askedAt) / MS);
    }
  }

  #of(lock: string): KindFigures {
    const kind = kindOf(lock);
    this.figures[kind] ??= { stays: 0, longestWait: 0, longestStall: 0, ordered: 0, undecided: 0 };
    return this.figures[kind];
  }

  #fail(what: string, error: unknown): void {
    this.errors.push(`${what}: ${error instanceof Error ? error.stack : String(error)}`);
  }
}

function plain(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
