/** What locks promise about the order of their holders: first come, first served, and rising tokens. Pure. */
import type { Finding, History } from "./checker.js";
import { inMs, inOrderOf, later, MS, type Outage, type Section } from "./sections.js";

/** The time of a few steps on an idle machine. On a busy one each step may be as late as timers were. */
const MOMENT = 40n * MS;
const STEPS = 4n;

/**
 * A call that was in the queue when another call was made must be served before it. Nothing more is certain: if two
 * calls were under way at the same time, only the server knows which came first. An owner that is already inside, and
 * re-enters or goes on as a reader, overtakes no call.
 */
export function findOvertaken(sections: readonly Section[], lag = 0n): Finding[] {
  const findings: Finding[] = [];
  // From the last entry to the first: of the sections that entered later, the first in the queue.
  const first: { all?: Section; readers?: Section } = {};
  const moment = MOMENT + STEPS * lag;
  const byEntry = inOrderOf("enteredAt", sections);
  const outermost = new Map<string, Section>();
  for (const section of byEntry) if (!outermost.has(section.owner)) outermost.set(section.owner, section);
  for (const section of byEntry.reverse()) {
    const { lock, id, owner, askedAt, place, shared } = section;
    if (outermost.get(owner) !== section) continue;
    for (const passed of shared ? [first.all, first.readers] : [first.all]) {
      if (!passed?.place || passed.place.at >= askedAt) continue;
      if (shared && isUntold(passed, section, byEntry, moment)) continue;
      const detail = `${id} entered before ${passed.id}, which was in line ${inMs(askedAt - passed.place.at)} ms before it asked`;
      findings.push({ kind: "overtaken", lock, detail });
    }
    const known = place && first[place.before]?.place;
    if (place && (!known || place.at < known.at)) first[place.before] = section;
  }
  return findings;
}

/**
 * A writer behind a holder of its own process leaves it to that holder to hand the lock over or to advertise the
 * writer, and advertises itself only a moment later. If the hold expires before that, readers do not know of the
 * writer. The first call behind that holder may have got the lock long before it wrote down that it is inside.
 */
function isUntold(
  { process, owner, place }: Section,
  reader: Section,
  all: readonly Section[],
  moment: bigint,
): boolean {
  if (place?.before !== "readers") return false;
  const since = reader.enteredAt - moment;
  const isNextBehind = (leftAt: bigint) =>
    all.every(({ enteredAt }) => enteredAt <= leftAt || enteredAt > since);
  const hides = ({ enteredAt, leftAt }: Section) =>
    enteredAt < reader.enteredAt && (leftAt === undefined || leftAt > since || isNextBehind(leftAt));
  return all.some((other) => other.process === process && other.owner !== owner && hides(other));
}

/**
 * A grant that existed when another call was made has the lower token. Without force, a holder that was inside before
 * has the lower token, too. Nested stays share the token of their owner.
 */
export function findTokenSlips(sections: readonly Section[], forced: boolean): Finding[] {
  const findings: Finding[] = [];
  const tokened = sections.filter(({ token }) => token !== undefined);
  const byToken = new Map<bigint, Section>();
  for (const section of tokened) {
    const twin = byToken.get(section.token as bigint);
    if (twin && twin.owner !== section.owner) findings.push(slip(section, twin));
    byToken.set(section.token as bigint, section);
  }
  const entered = inOrderOf("enteredAt", tokened);
  const asked = forced ? inOrderOf("askedAt", tokened) : entered;
  let highest: Section | undefined;
  let next = 0;
  for (const section of asked) {
    const since = forced ? section.askedAt : section.enteredAt;
    for (let before = entered[next]; before && before.enteredAt < since; before = entered[++next]) {
      if (!highest || (before.token as bigint) > (highest.token as bigint)) highest = before;
    }
    if (highest && highest.owner !== section.owner && (highest.token as bigint) > (section.token as bigint)) {
      findings.push(slip(section, highest));
    }
  }
  return findings;
}

function slip(section: Section, before: Section): Finding {
  const detail = `${section.id} got token ${section.token} after ${before.id} had got ${before.token}`;
  return { kind: "token", lock: section.lock, detail };
}

export interface Tally {
  /** Shared sections that were entered while another owner's was open: they show that sharing happens at all. */
  readonly together: number;
  /** Sections whose call was made while a call of another process was in the queue before it. */
  readonly behind: number;
}

/** How often the situations that the checks are about occur in the history of one lock. */
export function tally(sections: readonly Section[]): Tally {
  let together = 0;
  const open = new Map<string, bigint>();
  for (const { shared, owner, enteredAt, leftAt, lostAt } of inOrderOf("enteredAt", sections)) {
    if (!shared) continue;
    for (const [other, until] of open) if (until <= enteredAt) open.delete(other);
    if (open.size > (open.has(owner) ? 1 : 0)) together++;
    open.set(owner, later(open.get(owner) ?? 0n, lostAt ?? leftAt ?? enteredAt));
  }
  let behind = 0;
  const placed = sections.filter(({ place }) => place).sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
  let inLine: Section[] = [];
  let next = 0;
  for (const { askedAt, process, shared } of inOrderOf("askedAt", sections)) {
    for (let it = placed[next]; it && placeOf(it) < askedAt; it = placed[++next]) inLine.push(it);
    inLine = inLine.filter(({ enteredAt }) => enteredAt > askedAt);
    const isBehind = (other: Section) =>
      other.process !== process && (shared || other.place?.before === "all");
    if (inLine.some(isBehind)) behind++;
  }
  return { together, behind };
}

function placeOf({ place }: Section): bigint {
  return place?.at ?? 0n;
}

/**
 * A fault makes places in a queue uncertain: a waiter that is cut off, or stands still, for three times `pollCap` loses
 * its place, and a call whose command was lost came later than it knows.
 */
export function withoutDoubtfulPlaces(
  { sections, stalls }: Pick<History, "sections" | "stalls">,
  outages: readonly Outage[],
  trust: bigint,
): Section[] {
  const isCalm = ({ process, askedAt, enteredAt }: Section) =>
    [...outages, ...(stalls?.get(process) ?? [])].every(
      ({ from, until }) => until + trust < askedAt || from > enteredAt,
    );
  return sections.map((section) =>
    section.place === undefined || isCalm(section) ? section : { ...section, place: undefined },
  );
}
