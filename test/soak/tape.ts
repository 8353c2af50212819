/**
 * What a soak has recorded, on one clock, as data for its report: the faults, and the acquisitions and waits of each
 * second. After a round it keeps the holds of one scene only, because those of an hour would fill the memory.
 */
import type { Stay } from "../exclusion/crowd-checker.js";
import { endOf as endOfStay } from "../exclusion/crowd-checker.js";
import { type Deaths, endOf, later, type Outage, type Section } from "../exclusion/sections.js";
import { FAULTS, type FaultKind } from "./plan.js";

/** A hold, with its owner's wait. Milliseconds since the start of the soak. */
export interface Visit {
  readonly kind: string;
  readonly lock: string;
  readonly process: string;
  readonly asked: number;
  readonly from: number;
  readonly to: number;
}

/** The acquisitions of one second. Milliseconds. */
export interface Second {
  readonly at: number;
  readonly acquisitions: number;
  /**
   * Percentiles of the wait from the call to the grant: half, 99 of 100, and all were no longer; null if there was
   * none.
   */
  readonly p50: number | null;
  readonly p99: number | null;
  readonly most: number | null;
}

/** An interval with all of its holds. */
export interface Scene {
  readonly from: number;
  readonly to: number;
  readonly visits: readonly Visit[];
}

/** Milliseconds that a scene shows before and after its fault. */
const BEFORE = 1_500;
const AFTER = 3_000;

/** An injected fault. Milliseconds since the start of the soak. */
export interface Struck {
  readonly name: string;
  readonly group: FaultKind["group"];
  readonly from: number;
  readonly to: number;
}

export class Tape {
  readonly #start = process.hrtime.bigint();
  readonly faults: Struck[] = [];
  readonly seconds: Second[] = [];
  /** Acquisitions and the longest wait by kind; milliseconds. */
  readonly kinds: Record<string, { acquisitions: number; longestWait: number }> = {};
  /** The scene around the longest fault of a server or master. */
  scene: Scene | undefined;
  #sceneLasts = -1;
  /** Holds of the current round. */
  #visits: Visit[] = [];
  /** Faults of the current round, on the clock of the journals. */
  #outages: Outage[] = [];

  /** Milliseconds since the start of the soak. */
  at(instant: bigint = process.hrtime.bigint()): number {
    return Number(instant - this.#start) / 1e6;
  }

  /** Records a fault for as long as its injection takes. */
  async strike(name: string, inject: () => Promise<void>): Promise<void> {
    const from = process.hrtime.bigint();
    try {
      await inject();
    } finally {
      const until = process.hrtime.bigint();
      this.#outages.push({ from, until });
      const { group } = FAULTS.find((kind) => kind.name === name) as FaultKind;
      this.faults.push({ name, group, from: this.at(from), to: this.at(until) });
    }
  }

  /** The faults since the last call. */
  takeOutages(): Outage[] {
    const outages = this.#outages;
    this.#outages = [];
    return outages;
  }

  noteSections(sections: readonly Section[], deaths: Deaths): void {
    for (const section of sections)
      this.#note(section, section.lock.replace(/-.*/, ""), endOf(section, deaths));
  }

  noteStays(kind: string, stays: readonly Stay[]): void {
    for (const stay of stays) this.#note(stay, kind, later(endOfStay(stay), stay.enteredAt));
  }

  #note({ lock, process, askedAt, enteredAt }: Section | Stay, kind: string, end: bigint): void {
    const [asked, from, to] = [askedAt, enteredAt, end].map((instant) => this.at(instant)) as [
      number,
      number,
      number,
    ];
    this.#visits.push({ kind, lock, process, asked, from, to });
    this.count(kind, 1, from - asked);
  }

  count(kind: string, acquisitions: number, wait: number): void {
    const known = this.kinds[kind] ?? { acquisitions: 0, longestWait: 0 };
    this.kinds[kind] = {
      acquisitions: known.acquisitions + acquisitions,
      longestWait: Math.max(known.longestWait, wait),
    };
  }

  /** Sums up the holds of the round that ends. */
  closeRound(): void {
    const visits = this.#visits.sort((a, b) => a.from - b.from);
    this.#visits = [];
    for (let i = 0, at = secondOf(visits[0]); i < visits.length; at += 1_000) {
      const waits: number[] = [];
      for (let visit = visits[i]; visit && visit.from < at + 1_000; visit = visits[++i]) {
        waits.push(visit.from - visit.asked);
      }
      waits.sort((a, b) => a - b);
      const share = (of: number) => waits[Math.floor(of * (waits.length - 1))] ?? null;
      this.seconds.push({
        at,
        acquisitions: waits.length,
        p50: share(0.5),
        p99: share(0.99),
        most: share(1),
      });
    }
    for (const { group, from, to } of this.faults) {
      if (group === "network" || group === "process") continue;
      if (to - from <= this.#sceneLasts || !visits.some((visit) => visit.from > to)) continue;
      this.#sceneLasts = to - from;
      const [begin, end] = [from - BEFORE, to + AFTER];
      this.scene = {
        from: begin,
        to: end,
        visits: visits.filter((visit) => visit.to > begin && visit.from < end),
      };
    }
  }
}

function secondOf(visit: Visit | undefined): number {
  return Math.floor((visit?.from ?? 0) / 1_000) * 1_000;
}
