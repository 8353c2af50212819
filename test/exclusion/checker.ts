/**
 * Says what a history proves against a lock. Pure: it is given what happened, on the one monotonic clock that all
 * processes of a machine share (`process.hrtime.bigint()`), and knows nothing of Redis or of any lock's inside.
 *
 * What a holder claims is taken at its word, and no further: a section lasts from the grant to the last moment before
 * the unlock was sent, for the hold that its own clock had declared over only to that deadline, and for a process that
 * was killed to the kill.
 */

/** One stay inside a lock. Instants are nanoseconds. */
export interface Section {
  readonly lock: string;
  /** Unique to this stay. */
  readonly id: string;
  readonly process: string;
  /** When the call that got it was made. */
  readonly askedAt: bigint;
  readonly enteredAt: bigint;
  /** Undefined if it was never left: then its process must have died. */
  readonly leftAt: bigint | undefined;
  /** Set when the holder found at its end that its hold was over: the deadline that it last knew of. */
  readonly lostAt: bigint | undefined;
  /** Milliseconds for which a dead holder's lock may stay closed. */
  readonly lease: number;
  /** Who the witness still saw inside when this one entered. */
  readonly intruded: string | undefined;
}

/** A counter that is only changed inside its lock, by a read and a later write. */
export interface Counter {
  readonly lock: string;
  readonly value: number;
  /** How many writes were executed: each carried its receipt in the same transaction. */
  readonly writes: number;
}

/** What the server showed of a lock that nobody should have had. */
export interface Sighting {
  readonly lock: string;
  readonly at: bigint;
  /** As PTTL: -2 free, -1 without end. */
  readonly ttl: number;
}

/** A call that was still waiting when the history ended. */
export interface Ask {
  readonly lock: string;
  readonly askedAt: bigint;
  readonly until: bigint;
}

export interface History {
  readonly sections: readonly Section[];
  /** When each killed process was sent its SIGKILL. */
  readonly deaths: ReadonlyMap<string, bigint>;
  readonly counters?: readonly Counter[];
  readonly sightings?: readonly Sighting[];
  readonly asks?: readonly Ask[];
}

export interface Limits {
  /** Milliseconds: the longest lease that a process could have been granted just before it died. */
  readonly lease: number;
  /** Milliseconds granted to the machine wherever a time is measured. */
  readonly margin: number;
  /** Milliseconds for which a free lock may keep somebody waiting who asked for it. */
  readonly patience: number;
}

export type FindingKind = "overlap" | "intrusion" | "lost update" | "orphan" | "stuck" | "unfinished";

export interface Finding {
  readonly kind: FindingKind;
  readonly lock: string;
  readonly detail: string;
}

const MS = 1_000_000n;

export function check(history: History, limits: Limits): Finding[] {
  const { deaths, counters = [], sightings = [], asks = [] } = history;
  const findings: Finding[] = [];
  const locks = groupByLock(history.sections);
  for (const sections of locks.values()) {
    findings.push(...findUnfinished(sections, deaths));
    findings.push(...findOverlaps(sections, deaths));
    findings.push(...findIntrusions(sections, deaths));
  }
  findings.push(...findStuck(locks, asks, deaths, limits));
  findings.push(...findLostUpdates(counters));
  findings.push(...findOrphans(locks, sightings, deaths, limits));
  return findings;
}

function groupByLock(sections: readonly Section[]): Map<string, Section[]> {
  const locks = new Map<string, Section[]>();
  for (const section of sections) {
    const known = locks.get(section.lock);
    if (known) known.push(section);
    else locks.set(section.lock, [section]);
  }
  return locks;
}

/** The last moment at which the holder surely took itself for one. */
function endOf(section: Section, deaths: ReadonlyMap<string, bigint>): bigint {
  const { enteredAt, leftAt, lostAt, process } = section;
  const end = lostAt ?? leftAt ?? deaths.get(process) ?? enteredAt;
  return later(end, enteredAt);
}

/** From when on nothing of the section may keep others out. */
function goneBy(section: Section, deaths: ReadonlyMap<string, bigint>): bigint {
  const end = endOf(section, deaths);
  return section.leftAt === undefined ? end + BigInt(section.lease) * MS : end;
}

function findUnfinished(sections: readonly Section[], deaths: ReadonlyMap<string, bigint>): Finding[] {
  return sections
    .filter(({ leftAt, process }) => leftAt === undefined && !deaths.has(process))
    .map(({ lock, id }) => ({ kind: "unfinished", lock, detail: `${id} never left, and its process lives` }));
}

function findOverlaps(sections: readonly Section[], deaths: ReadonlyMap<string, bigint>): Finding[] {
  const findings: Finding[] = [];
  let last: Section | undefined;
  for (const section of [...sections].sort(byEntry)) {
    if (last && section.enteredAt < endOf(last, deaths)) {
      const ns = endOf(last, deaths) - section.enteredAt;
      const detail = `${section.id} entered ${inMs(ns)} ms before ${last.id} was out`;
      findings.push({ kind: "overlap", lock: section.lock, detail });
    }
    if (!last || endOf(section, deaths) > endOf(last, deaths)) last = section;
  }
  return findings;
}

/** The witness is a register inside the lock, so its order is that of one server and not of clocks. */
function findIntrusions(sections: readonly Section[], deaths: ReadonlyMap<string, bigint>): Finding[] {
  const byId = new Map(sections.map((section) => [section.id, section]));
  return sections.flatMap((section) => {
    const { intruded, lock, id, enteredAt } = section;
    if (intruded === undefined) return [];
    const other = byId.get(intruded);
    // Whoever left in order had signed out of the register first.
    const isOver =
      other &&
      (other.leftAt === undefined || other.lostAt !== undefined) &&
      endOf(other, deaths) <= enteredAt;
    if (isOver) return [];
    return [{ kind: "intrusion", lock, detail: `${id} found ${intruded} inside` } as const];
  });
}

/** Looks at each stretch of time in which a lock was free: whoever got it next may not have waited through it. */
function findStuck(
  locks: ReadonlyMap<string, readonly Section[]>,
  asks: readonly Ask[],
  deaths: ReadonlyMap<string, bigint>,
  { patience, margin }: Limits,
): Finding[] {
  const findings: Finding[] = [];
  const limit = BigInt(patience + margin) * MS;
  const report = (lock: string, who: string, waited: bigint) => {
    if (waited > limit)
      findings.push({ kind: "stuck", lock, detail: `${who} waited ${inMs(waited)} ms for a free lock` });
  };
  const freeSince = new Map<string, bigint>();
  for (const [lock, sections] of locks) {
    let free = 0n;
    for (const section of [...sections].sort(byEntry)) {
      report(lock, section.id, section.enteredAt - later(free, section.askedAt));
      free = later(free, goneBy(section, deaths));
    }
    freeSince.set(lock, free);
  }
  for (const { lock, askedAt, until } of asks) {
    report(lock, "a call", until - later(freeSince.get(lock) ?? 0n, askedAt));
  }
  return findings;
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
  deaths: ReadonlyMap<string, bigint>,
  { lease, margin }: Limits,
): Finding[] {
  // A process may have been granted any lock in the moment of its death.
  const deadBy = [...deaths.values()].reduce((latest, at) => later(latest, at + BigInt(lease) * MS), 0n);
  return sightings.flatMap(({ lock, at, ttl }) => {
    const sections = locks.get(lock) ?? [];
    const free = sections.reduce((latest, section) => later(latest, goneBy(section, deaths)), deadBy);
    if (ttl === -2 || at - free <= BigInt(margin) * MS) return [];
    const detail = `nobody's for ${inMs(at - free)} ms and still closed (ttl ${ttl})`;
    return [{ kind: "orphan", lock, detail } as const];
  });
}

function byEntry(a: Section, b: Section): number {
  return a.enteredAt < b.enteredAt ? -1 : 1;
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function inMs(ns: bigint): string {
  return (Number(ns) / 1e6).toFixed(3);
}
