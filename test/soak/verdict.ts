/** What went wrong in a soak, and how close the rest came to the limits. */
import { check, type History, stallsOf } from "../exclusion/checker.js";
import { type Crowd, keepCrowd } from "../exclusion/crowd.js";
import { checkCrowd } from "../exclusion/crowd-checker.js";
import { type Figures, type Fleet, keep } from "../exclusion/fleet.js";
import type { Rounds } from "../exclusion/latch-rounds.js";
import { withoutDoubtfulPlaces } from "../exclusion/order.js";
import type { Deaths, Outage } from "../exclusion/sections.js";
import { LIMITS, limitsOf } from "./parts.js";
import type { Tape } from "./tape.js";

/** A rule that was broken. */
export interface Violation {
  readonly kind: string;
  readonly lock: string;
  readonly detail: string;
  readonly round: number;
}

/** What may excuse a longer wait: faults, and milliseconds for a slow machine. */
interface Shadows {
  readonly outages: readonly Outage[];
  readonly slack: number;
}

/**
 * Above this slack the order in line cannot be judged: a writer behind another one of its own process registers at the
 * server a moment later, and the checker allows only 40 ms for that.
 */
const ORDERLY = 1_000;
/** Nanoseconds within which a connection is back after a fault. */
const COMES_BACK = 1_000_000_000n;

const ALWAYS: readonly Outage[] = [{ from: 0n, until: 2n ** 63n }];

export class Verdict {
  readonly violations: Violation[] = [];
  /** Errors of the processes, and of the injections themselves. */
  readonly errors: string[] = [];
  /** What the workers counted themselves. */
  readonly counts: Record<string, number> = {};
  /** The longest wait for a free lock by kind, in milliseconds. */
  readonly stalls: Record<string, number> = {};
  /** Rounds in which the machine was too slow to judge the order of the waiters. */
  disorderly = 0;
  /** Number of the current round. */
  round = 0;
  readonly #tape: Tape;

  constructor(tape: Tape) {
    this.#tape = tape;
  }

  fail(what: string, error: unknown): void {
    this.errors.push(`${what}: ${error instanceof Error ? error.stack : String(error)}`);
  }

  async judgeLocks(
    fleet: Fleet,
    { deaths, outages, slack }: Shadows & { readonly deaths: Deaths },
  ): Promise<void> {
    const recalled = await fleet.recall(deaths, LIMITS);
    const isOrderly = slack <= ORDERLY;
    if (!isOrderly) this.disorderly++;
    const doubts = isOrderly ? outages : ALWAYS;
    const sections = withoutDoubtfulPlaces(recalled, doubts, COMES_BACK);
    this.#tape.noteSections(sections, deaths);
    const history: History = { ...recalled, sections, outages };
    const found = [...new Set(sections.map(({ lock }) => kindOf(lock)))].flatMap((kind) => {
      const mine = ofKind(kind, history);
      const limits = limitsOf(kind);
      this.#noteStalls(kind, stallsOf(mine, limits));
      return check(mine, { ...limits, margin: limits.margin + slack });
    });
    if (found.length > 0) await keep(history, found);
    this.#noteViolations(found);
  }

  async judgeCrowd(crowd: Crowd, { outages, slack }: Shadows): Promise<void> {
    const verdict = await crowd.judge();
    const { kind, limits } = crowd.part;
    this.errors.push(...verdict.errors);
    if (kind === "latch") return;
    const history = { ...verdict.history, outages };
    this.#tape.noteStays(kind, history.stays);
    const findings = checkCrowd(history, { ...limits, patience: limits.patience + slack });
    if (findings.length > 0)
      console.log(`its history is in ${await keepCrowd({ ...verdict, history, findings })}`);
    this.#noteViolations(findings);
  }

  judgeLatches({ awaited, findings }: Rounds): void {
    this.#tape.count("latch", awaited, 0);
    this.#noteViolations(findings.map((detail) => ({ kind: "latch", lock: "latch", detail })));
  }

  /** Adds the counts and errors of the worker processes. */
  noteFigures(figures: readonly (Figures | undefined)[]): void {
    for (const { counts, errors } of figures.flatMap((each) => each ?? [])) {
      this.errors.push(...errors);
      for (const [name, count] of Object.entries(counts))
        this.counts[name] = (this.counts[name] ?? 0) + count;
    }
  }

  #noteViolations(found: readonly Omit<Violation, "round">[]): void {
    this.violations.push(...found.map((finding) => ({ ...finding, round: this.round })));
  }

  #noteStalls(kind: string, stalls: ReturnType<typeof stallsOf>): void {
    const longest = stalls.reduce((most, { waited }) => Math.max(most, Number(waited) / 1e6), 0);
    this.stalls[kind] = Math.max(this.stalls[kind] ?? 0, longest);
  }
}

function kindOf(lock: string): string {
  return lock.slice(0, lock.indexOf("-"));
}

function ofKind(kind: string, history: History): History {
  const isOf = ({ lock }: { lock: string }) => kindOf(lock) === kind;
  const { sections, counters = [], sightings = [], asks = [] } = history;
  return {
    ...history,
    sections: sections.filter(isOf),
    counters: counters.filter(isOf),
    sightings: sightings.filter(isOf),
    asks: asks.filter(isOf),
  };
}
