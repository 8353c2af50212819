/**
 * Says what a history proves against a semaphore. Pure: it gets a record of what happened, and knows nothing of Redis.
 * Instants are nanoseconds on the clock that all processes of a machine share.
 */
import { type Deaths, inMs, later, MS, type Outage } from "./sections.js";

/** Permits that a process had, from the grant to their end. */
export interface Stay {
  readonly lock: string;
  readonly id: string;
  readonly process: string;
  readonly permits: number;
  readonly askedAt: bigint;
  readonly enteredAt: bigint;
  /**
   * The last moment before the permits were given back; undefined if they never were: then the process must have died.
   */
  readonly leftAt: bigint | undefined;
  /** When the lease ended by the server's clock, as far as that was seen; undefined if there is no lease. */
  readonly lapsedAt: bigint | undefined;
  /** When the library said that it could not keep the permit. */
  readonly lostAt: bigint | undefined;
  /** When the library refused to take the permit back. */
  readonly refusedAt: bigint | undefined;
  /** The stays that the witness saw inside, with this one. */
  readonly inside: readonly string[];
  /** Whether the library promised to keep the permit until it is given back. */
  readonly kept: boolean;
}

/** A call that waited and got nothing. */
export interface InVain {
  readonly lock: string;
  readonly permits: number;
  readonly askedAt: bigint;
  readonly until: bigint;
}

/** The numbers on the server at the end, when everything was given back or has expired. */
export interface Rest {
  readonly lock: string;
  readonly available: number;
  readonly acquired: number;
}

export interface CrowdHistory {
  readonly stays: readonly Stay[];
  readonly inVain: readonly InVain[];
  readonly deaths: Deaths;
  readonly rests: readonly Rest[];
  readonly outages?: readonly Outage[];
}

export interface CrowdLimits {
  /** The permits of each semaphore. */
  readonly permits: number;
  /** The most permits that a call may want: the first call may keep the others of its process waiting for that many. */
  readonly largest: number;
  /** Milliseconds for which free permits may keep a call waiting that wants them. */
  readonly patience: number;
  /** Milliseconds: the longest lease that a process may have been granted just before it died. */
  readonly lease: number;
  /** Whether nothing happens that would excuse the loss of a kept permit. */
  readonly keeps?: boolean;
  /** Milliseconds of tolerance where a time is measured by two clocks. */
  readonly margin: number;
}

export type CrowdFindingKind =
  /** More permits were out than there are. */
  | "overflow"
  /** The same, as the witness saw it. */
  | "intrusion"
  | "unfinished"
  /** Permits were lost, or came from nowhere. */
  | "sum"
  /** The library refused to take back a permit whose lease was not over. */
  | "refused"
  /** A permit expired that the library had promised to keep. */
  | "unkept"
  | "stuck";

export interface CrowdFinding {
  readonly kind: CrowdFindingKind;
  readonly lock: string;
  readonly detail: string;
}

export function checkCrowd(history: CrowdHistory, limits: CrowdLimits): CrowdFinding[] {
  const { stays, inVain, rests, deaths, outages = [] } = history;
  const findings = findSums(rests, limits);
  const locks = new Set([...stays, ...inVain].map(({ lock }) => lock));
  for (const lock of locks) {
    const mine = stays.filter((stay) => stay.lock === lock);
    findings.push(...findUnfinished(mine, deaths));
    findings.push(...findRefused(mine, limits));
    findings.push(...findUnkept(mine, limits));
    const real = mine.filter((stay) => endOf(stay) > stay.enteredAt);
    findings.push(...findOverflows(real, limits));
    findings.push(...findIntrusions(real, limits));
    findings.push(...findStuck(lock, mine, { inVain, deaths, outages }, limits));
  }
  return findings;
}

/** Until this moment the permits were surely not free: a dead process, too, has them as long as the server says. */
export function endOf({ enteredAt, leftAt, lostAt, lapsedAt }: Stay): bigint {
  let first: bigint | undefined;
  for (const end of [leftAt, lostAt, lapsedAt]) {
    if (end !== undefined && (first === undefined || end < first)) first = end;
  }
  return first ?? enteredAt;
}

function findSums(rests: readonly Rest[], { permits }: CrowdLimits): CrowdFinding[] {
  return rests
    .filter(({ available, acquired }) => available !== permits || acquired !== 0)
    .map(({ lock, available, acquired }) => {
      const detail = `of ${permits} permits ${available} are free, and ${acquired} out, when nobody has any`;
      return { kind: "sum", lock, detail };
    });
}

function findUnfinished(stays: readonly Stay[], deaths: Deaths): CrowdFinding[] {
  return stays
    .filter(({ leftAt, process }) => leftAt === undefined && !deaths.has(process))
    .map(({ lock, id }) => ({ kind: "unfinished", lock, detail: `${id} never left, and its process lives` }));
}

function findRefused(stays: readonly Stay[], { margin }: CrowdLimits): CrowdFinding[] {
  return stays.flatMap(({ lock, id, refusedAt, lapsedAt, lostAt }) => {
    if (refusedAt === undefined || lostAt !== undefined) return [];
    if (lapsedAt !== undefined && lapsedAt <= refusedAt + BigInt(margin) * MS) return [];
    const left = lapsedAt === undefined ? "has no end" : `goes on for ${inMs(lapsedAt - refusedAt)} ms`;
    return [{ kind: "refused", lock, detail: `${id} could not be given back, though its lease ${left}` }];
  });
}

function findUnkept(stays: readonly Stay[], { keeps }: CrowdLimits): CrowdFinding[] {
  if (!keeps) return [];
  return stays
    .filter(
      ({ kept, leftAt, lostAt, refusedAt }) =>
        kept && leftAt !== undefined && (lostAt ?? refusedAt) !== undefined,
    )
    .map(({ lock, id }) => ({ kind: "unkept", lock, detail: `${id} was lost, and nothing had happened` }));
}

function findOverflows(stays: readonly Stay[], { permits, margin }: CrowdLimits): CrowdFinding[] {
  const findings: CrowdFinding[] = [];
  let inside: Stay[] = [];
  for (const stay of inOrder(stays)) {
    inside = inside.filter((other) => surelyAt(other, stay.enteredAt, margin));
    inside.push(stay);
    const out = sumOf(inside);
    if (out <= permits) continue;
    const detail = `${out} permits are out when ${stay.id} enters: ${inside.map(({ id }) => id).join()}`;
    findings.push({ kind: "overflow", lock: stay.lock, detail });
  }
  return findings;
}

/**
 * The order of the witness is that of one server, and not of clocks. All the stays that it showed inside had begun, and
 * none had ended, when the last of them began.
 */
function findIntrusions(stays: readonly Stay[], { permits, margin }: CrowdLimits): CrowdFinding[] {
  const byId = new Map(stays.map((stay) => [stay.id, stay]));
  return stays.flatMap((stay) => {
    const met = stay.inside.flatMap((id) => byId.get(id) ?? []);
    const last = met.reduce((latest, { enteredAt }) => later(latest, enteredAt), stay.enteredAt);
    const out = sumOf(met.filter((other) => surelyAt(other, last, margin)));
    if (out <= permits) return [];
    return [{ kind: "intrusion", lock: stay.lock, detail: `${stay.id} met ${out} permits inside` } as const];
  });
}

/** The end of a lease is known by the server's clock only, and so less exactly. */
function surelyAt(stay: Stay, instant: bigint, margin: number): boolean {
  const { lapsedAt } = stay;
  if (lapsedAt !== undefined && lapsedAt - BigInt(margin) * MS <= instant) return false;
  return endOf(stay) > instant;
}

/** A call may not have waited while permits were free, whether it got some or not. */
function findStuck(
  lock: string,
  stays: readonly Stay[],
  { inVain, deaths, outages }: Required<Pick<CrowdHistory, "inVain" | "deaths" | "outages">>,
  limits: CrowdLimits,
): CrowdFinding[] {
  const limit = BigInt(limits.patience) * MS;
  const served = stays.map(({ id: who, askedAt, enteredAt: until }) => ({ who, askedAt, until }));
  const unserved = inVain
    .filter((call) => call.lock === lock)
    .map(({ askedAt, until }) => ({ who: "a call", askedAt, until }));
  const ordered = inOrder(stays);
  return [...served, ...unserved].flatMap(({ who, askedAt, until }) => {
    if (until - askedAt <= limit) return [];
    const free = freeSince(ordered, until, limits.permits - limits.largest, deaths, limits);
    const since = outages.reduce(
      (last, { from, until: end }) => (from < until ? later(last, end) : last),
      later(askedAt, free),
    );
    if (until - since <= limit) return [];
    const detail = `${who} waited ${inMs(until - since)} ms while ${limits.largest} permits were free`;
    return [{ kind: "stuck", lock, detail }];
  });
}

/** The last moment before an instant at which more than `most` permits may have been out. */
function freeSince(
  stays: readonly Stay[],
  instant: bigint,
  most: number,
  deaths: Deaths,
  { lease, margin }: CrowdLimits,
): bigint {
  // A process that died may have been granted permits at that moment.
  let since = [...deaths.values()].reduce(
    (last, at) => (at < instant ? later(last, at + BigInt(lease) * MS) : last),
    0n,
  );
  const before = stays.filter(({ enteredAt }) => enteredAt < instant);
  // The end of a lease is noticed a little later.
  const gone = ({ leftAt, lapsedAt, enteredAt }: Stay) =>
    (leftAt ?? later(lapsedAt ?? 0n, enteredAt)) + BigInt(margin) * MS;
  const changes = before.flatMap((stay) => [
    { at: stay.enteredAt, by: stay.permits },
    { at: gone(stay), by: -stay.permits },
  ]);
  let out = 0;
  for (const { at, by } of changes.sort((a, b) => (a.at < b.at ? -1 : 1))) {
    if (at >= instant) break;
    if (out > most) since = later(since, at);
    out += by;
  }
  return out > most ? instant : since;
}

function inOrder(stays: readonly Stay[]): Stay[] {
  return [...stays].sort((a, b) => (a.enteredAt < b.enteredAt ? -1 : a.enteredAt > b.enteredAt ? 1 : 0));
}

function sumOf(stays: readonly Stay[]): number {
  return stays.reduce((sum, { permits }) => sum + permits, 0);
}
