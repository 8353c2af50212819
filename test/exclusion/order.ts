/** What locks promise about the order of those who get them: first come first served, and rising tokens. Pure. */
import type { Finding, History } from "./checker.js";
import { inMs, inOrderOf, later, MS, type Outage, type Section } from "./sections.js";

/** What a quiet machine takes for a moment of a few steps. On a busy one each of them may be as late as timers were. */
const MOMENT = 40n * MS;
const STEPS = 4n;

/**
 * Who was in line when another asked goes before it. Only that much is certain: of two calls that were under way at the
 * same time, nobody outside the server knows which came first. An owner that is inside already, and comes in once more
 * or goes on as a reader, passes nobody.
 */
export function findOvertaken(sections: readonly Section[], lag = 0n): Finding[] {
  const findings: Finding[] = [];
  // From the last entry to the first: of those that entered later, who stood in line first.
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
 * A writer behind a holder of its own process trusts that one to hand over or to tell of it, and tells the server that it
 * waits a moment later: if the hold lapses before, readers have not heard of it. Whoever is the first behind that holder
 * may have been granted the lock long before it came to write down that it is inside.
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
 * A grant that was there when another call was made has the lower token; so has, where nobody is thrown out, whoever
 * was inside before. Nested stays share the token of their owner.
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
  /** Shared sections that were entered while another owner's was open: whether sharing happens at all. */
  readonly together: number;
  /** Sections that were asked for while somebody of another process was in line before them. */
  readonly behind: number;
}

/** How much of what the checks are about a history of one lock has. */
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
 * A place in a line is worth nothing where a fault strikes: whoever is cut off, or stands still, for three times `pollCap` loses it,
 * and a call whose command was lost came later than it knows.
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
