/**
 * Says what a history proves against a lock. Pure: it gets a record of what happened, and knows nothing of Redis or of
 * how a lock works.
 */
import { findOvertaken, findTokenSlips } from "./order.js";
import {
  type Deaths,
  endOf,
  goneBy,
  groupByLock,
  inMs,
  inOrderOf,
  later,
  MS,
  type Outage,
  type Section,
  wasInside,
} from "./sections.js";

/** A counter that is changed only inside its lock, by a read and a later write. */
export interface Counter {
  readonly lock: string;
  readonly value: number;
  /** How many writes were executed. Each left its receipt in the same transaction. */
  readonly writes: number;
}

/** What the server showed of a lock that no process should have held. */
export interface Sighting {
  readonly lock: string;
  /** The key that was found; absent for the lock itself. */
  readonly key?: string;
  readonly at: bigint;
  /** The answer of PTTL: -2 if the lock is free, -1 if it has no TTL. */
  readonly ttl: number;
}

/** A call that was still waiting when the history ended. */
export interface Ask {
  readonly lock: string;
  /** Whether the call wanted to share the lock. */
  readonly shared?: boolean;
  readonly askedAt: bigint;
  readonly until: bigint;
}

export interface History {
  readonly sections: readonly Section[];
  readonly deaths: Deaths;
  readonly counters?: readonly Counter[];
  readonly sightings?: readonly Sighting[];
  readonly asks?: readonly Ask[];
  readonly outages?: readonly Outage[];
  /** Locks that the server still kept for killed processes, which may have told the witness nothing of them. */
  readonly left?: ReadonlyMap<string, readonly Outage[]>;
  /** When each process stood still: its waiters may have lost their places in a queue. */
  readonly stalls?: ReadonlyMap<string, readonly Outage[]>;
  /** The most nanoseconds by which a timer of any process was late: on such a machine, brief actions take longer too. */
  readonly lag?: bigint;
  /** Locks that were taken by force, or forgotten by their server: stays there may overlap. */
  readonly forced?: ReadonlySet<string>;
}

export interface Limits {
  /** Milliseconds: the longest lease that a process may have been granted just before it died. */
  readonly lease: number;
  /** Milliseconds of tolerance wherever a time is measured. */
  readonly margin: number;
  /** Milliseconds for which a free lock may keep a call waiting that wants it. */
  readonly patience: number;
  /** Milliseconds for which a dead waiter may hold up the waiters behind it; 0 for locks without a queue. Default 0. */
  readonly absence?: number;
}

export type FindingKind =
  | "overlap"
  | "intrusion"
  | "lost update"
  | "torn read"
  | "overtaken"
  | "token"
  | "orphan"
  | "stuck"
  | "unfinished";

export interface Finding {
  readonly kind: FindingKind;
  readonly lock: string;
  readonly detail: string;
}

export function check(history: History, limits: Limits): Finding[] {
  const { deaths, counters = [], sightings = [], forced = new Set() } = history;
  const findings: Finding[] = [];
  const locks = groupByLock(history.sections);
  for (const [lock, sections] of locks) {
    findings.push(...findUnfinished(sections, deaths));
    const real = sections.filter(wasInside);
    findings.push(...findTokenSlips(real, forced.has(lock)));
    if (forced.has(lock)) continue;
    findings.push(...findOverlaps(real, deaths));
    findings.push(...findIntrusions(sections, deaths));
    findings.push(...findTornReads(real));
    findings.push(...findOvertaken(real, history.lag));
  }
  findings.push(...findStuck(history, limits));
  findings.push(...findLostUpdates(counters));
  findings.push(...findOrphans(locks, sightings, deaths, limits));
  return findings;
}

function findUnfinished(sections: readonly Section[], deaths: Deaths): Finding[] {
  return sections
    .filter(({ leftAt, process }) => leftAt === undefined && !deaths.has(process))
    .map(({ lock, id }) => ({ kind: "unfinished", lock, detail: `${id} never left, and its process lives` }));
}

function findOverlaps(sections: readonly Section[], deaths: Deaths): Finding[] {
  const findings: Finding[] = [];
  let inside: Section[] = [];
  for (const section of inOrderOf("enteredAt", sections)) {
    inside = inside.filter((other) => endOf(other, deaths) > section.enteredAt);
    const last = latest(
      inside.filter((other) => !(section.shared && other.shared)),
      deaths,
    );
    if (last) {
      const ns = endOf(last, deaths) - section.enteredAt;
      const detail = `${section.id} entered ${inMs(ns)} ms before ${last.id} was out`;
      findings.push({ kind: "overlap", lock: section.lock, detail });
    }
    inside.push(section);
  }
  return findings;
}

function latest(sections: readonly Section[], deaths: Deaths): Section | undefined {
  let last: Section | undefined;
  for (const section of sections) if (!last || endOf(section, deaths) > endOf(last, deaths)) last = section;
  return last;
}

/**
 * The witness is a register that is changed inside the lock, so its order is that of one server and not of clocks. A
 * short lease may be over when the entry is written.
 */
function findIntrusions(sections: readonly Section[], deaths: Deaths): Finding[] {
  const byId = new Map(sections.map((section) => [section.id, section]));
  return sections.filter(wasInside).flatMap((section) =>
    section.intruded.flatMap((whom) => {
      const { lock, id } = section;
      const other = byId.get(whom);
      if (other && (isOver(other, section, deaths) || endOf(section, deaths) <= other.enteredAt)) return [];
      if (other && !wasInside(other)) return [];
      return [{ kind: "intrusion", lock, detail: `${id} found ${whom} inside` } as const];
    }),
  );
}

/** A holder that left in order had left the register before, unless its lease ended before that command arrived. */
function isOver(section: Section, next: Section, deaths: Deaths): boolean {
  const { leftAt, lostAt, deadline } = section;
  const lapsed = deadline !== undefined && deadline <= next.enteredAt;
  if (leftAt !== undefined && lostAt === undefined && !lapsed) return false;
  return endOf(section, deaths) <= next.enteredAt;
}

function findTornReads(sections: readonly Section[]): Finding[] {
  return sections
    .filter(({ torn }) => torn)
    .map(({ lock, id }) => ({ kind: "torn read", lock, detail: `what ${id} read had changed when it left` }));
}

/** A holder may not have waited through a long time in which the lock was free. */
function findStuck(history: History, limits: Limits): Finding[] {
  const limit = BigInt(limits.patience + limits.margin) * MS;
  return stallsOf(history, limits)
    .filter(({ waited }) => waited > limit)
    .map(({ lock, who, waited }) => {
      return { kind: "stuck", lock, detail: `${who} waited ${inMs(waited)} ms for a free lock` };
    });
}

/** A call that waited although the lock was free, and for how long. */
export interface Stall {
  readonly lock: string;
  readonly who: string;
  /** Nanoseconds; negative for a call that was served at once. */
  readonly waited: bigint;
}

/** How long each call waited after the lock had last become free, or after an outage had ended. */
export function stallsOf(history: History, limits: Limits): Stall[] {
  const { deaths, asks = [], outages = [], left = new Map<string, Outage[]>() } = history;
  const locks = groupByLock(history.sections);
  const calls = new Map<string, Call[]>();
  const add = (call: Call) => calls.set(call.lock, [...(calls.get(call.lock) ?? []), call]);
  for (const [lock, sections] of locks) {
    const served = sections.map(({ id: who, shared, askedAt, enteredAt: until }) => {
      return { lock, who, shared, askedAt, until };
    });
    calls.set(lock, served);
  }
  for (const { lock, shared = false, askedAt, until } of asks) {
    add({ lock, who: "a call", shared, askedAt, until });
  }
  return [...calls].flatMap(([lock, wanted]) => {
    const sections = locks.get(lock) ?? [];
    const known = [...outages, ...(left.get(lock) ?? [])];
    const closedBefore = {
      exclusive: closings([...known, ...byEntry(sections, deaths)], deaths, limits),
      shared: closings([...known, ...byAsking(sections, deaths)], deaths, limits),
    };
    return wanted.map(({ who, shared, askedAt, until }) => {
      const free = closedBefore[shared ? "shared" : "exclusive"](until);
      return { lock, who, waited: until - later(free, askedAt) };
    });
  });
}

interface Call {
  readonly lock: string;
  readonly who: string;
  readonly shared: boolean;
  readonly askedAt: bigint;
  /** When the call was served, or stopped waiting. */
  readonly until: bigint;
}

/** A period in which a lock may be closed to a call. */
type Closing = Outage;

/** To a call that wants the lock alone, each holder closes it. */
function byEntry(sections: readonly Section[], deaths: Deaths): Closing[] {
  return sections.map((section) => ({ from: section.enteredAt, until: goneBy(section, deaths) }));
}

/** To a reader, a writer closes the lock, and may already do so while it waits. */
function byAsking(sections: readonly Section[], deaths: Deaths): Closing[] {
  const writers = sections.filter(({ shared }) => !shared);
  return writers.map((section) => ({ from: section.askedAt, until: goneBy(section, deaths) }));
}

/** Returns, for an instant, until when the closings that began before it kept the lock closed. */
function closings(
  known: readonly Closing[],
  deaths: Deaths,
  { lease, absence = 0 }: Limits,
): (instant: bigint) => bigint {
  // A process that died may have waited in any queue, or been granted the lock at that moment.
  const span = absence > 0 ? BigInt(Math.max(lease, absence)) * MS : 0n;
  const dead = [...deaths.values()].map((at) => ({ from: at, until: at + span }));
  const sorted = [...known, ...(span > 0n ? dead : [])].sort((a, b) => (a.from < b.from ? -1 : 1));
  let closed = 0n;
  const closedSince = sorted.map(({ until }) => {
    closed = later(closed, until);
    return closed;
  });
  return (instant) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] as Closing).from < instant) low = middle + 1;
      else high = middle;
    }
    return closedSince[low - 1] ?? 0n;
  };
}

function findLostUpdates(counters: readonly Counter[]): Finding[] {
  return counters
    .filter(({ value, writes }) => value !== writes)
    .map(({ lock, value, writes }) => ({
      kind: "lost update",
      lock,
      detail: `${writes} increments were written, the counter says ${value}`,
    }));
}

function findOrphans(
  locks: ReadonlyMap<string, readonly Section[]>,
  sightings: readonly Sighting[],
  deaths: Deaths,
  { lease, margin, absence = 0 }: Limits,
): Finding[] {
  // A process may have been granted any lock at the moment of its death, or waited in its queue.
  const span = BigInt(Math.max(lease, absence)) * MS;
  const deadBy = [...deaths.values()].reduce((last, at) => later(last, at + span), 0n);
  return sightings.flatMap(({ lock, key, at, ttl }) => {
    const sections = locks.get(lock) ?? [];
    const free = sections.reduce((last, section) => later(last, goneBy(section, deaths)), deadBy);
    if (ttl === -2 || at - free <= BigInt(margin) * MS) return [];
    const what = key === undefined ? "still closed" : `${key} is still there`;
    return [{ kind: "orphan", lock, detail: `nobody's for ${inMs(at - free)} ms and ${what} (ttl ${ttl})` }];
  });
}
