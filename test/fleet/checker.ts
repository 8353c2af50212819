/**
 * Says what a history proves against the locks. Pure: it gets a record of what happened, and knows nothing of Redis or
 * of how a lock works.
 *
 * A stay counts only for as long as its holder surely relied on it: see `endOf`.
 */
import { type Ask, type Deaths, groupByLock, kindOf, MS, type Outage, type Stay } from "./history.js";

/** A counter that is changed only inside its lock, by a read and a later write. */
export interface Counter {
  readonly lock: string;
  readonly value: number;
  /** How many writes were executed. Each left its receipt in the same transaction. */
  readonly writes: number;
}

export interface History {
  readonly stays: readonly Stay[];
  readonly deaths: Deaths;
  readonly asks?: readonly Ask[];
  readonly counters?: readonly Counter[];
  /** Keys of locks that are still there, although everybody has left and every lease is over. */
  readonly remains?: readonly { readonly lock: string; readonly key: string; readonly ttl: number }[];
  /** The free permits when nobody had any. */
  readonly rests?: readonly { readonly lock: string; readonly available: number }[];
  readonly outages?: readonly Outage[];
  /** When each process stood still: its waiters may have lost their places in a queue. */
  readonly stalls?: ReadonlyMap<string, readonly Outage[]>;
  /** Locks of which a write may have come too late. */
  readonly doubtful?: ReadonlySet<string>;
}

export interface Limits {
  /** Milliseconds for which a free lock may keep a call waiting that wants it. */
  readonly patience: number;
  /** The same for groups, which wait for one member while others may be free. */
  readonly groupPatience?: number;
  /** Milliseconds for which a dead process may hold up others: by a lease, or by its place in a queue. */
  readonly absence: number;
  /** The permits of each semaphore, and the most that a call wants. */
  readonly permits: number;
  readonly largest: number;
}

export type FindingKind =
  /** Two were inside at once, or more permits were out than there are. */
  | "overlap"
  /** The same, as the witness saw it. */
  | "intrusion"
  | "lost update"
  | "torn read"
  | "overtaken"
  | "token"
  | "orphan"
  | "stuck"
  | "unfinished"
  /** Permits were lost, or came from nowhere. */
  | "sum"
  /** The library refused to take back a permit whose lease was not over. */
  | "refused"
  /** No order of all calls explains every answer. */
  | "order";

export interface Finding {
  readonly kind: FindingKind;
  readonly lock: string;
  readonly detail: string;
}

/** Locks of this kind are taken by force, so stays there may overlap: only tokens are promised. */
const FORCED = "forced";
/** Kinds in which a call that stands in the queue is served before all later calls. */
const IN_ORDER = ["fair"];

export function check(history: History, limits: Limits): Finding[] {
  const { deaths, counters = [], remains = [], rests = [], doubtful = new Set() } = history;
  const findings: Finding[] = [];
  const add = (kind: FindingKind, lock: string, detail: string) => findings.push({ kind, lock, detail });
  for (const [lock, stays] of groupByLock(history.stays)) {
    const forced = kindOf(lock) === FORCED;
    for (const { id, leftAt, process, refusedAt, until } of stays) {
      if (leftAt === undefined && !deaths.has(process))
        add("unfinished", lock, `${id} never left, and its process lives`);
      if (refusedAt === undefined || refusedAt >= until) continue;
      add(
        "refused",
        lock,
        `${id} could not be given back, though its lease goes on for ${inMs(until - refusedAt)} ms`,
      );
    }
    const real = stays.filter((stay) => endOf(stay, deaths) > stay.enteredAt);
    for (const detail of tokenSlips(real, forced)) add("token", lock, detail);
    if (forced) continue;
    for (const detail of overlaps(real, history, limits)) add("overlap", lock, detail);
    for (const detail of intrusions(real, history, limits)) add("intrusion", lock, detail);
    const torn = doubtful.has(lock) ? [] : real.filter((stay) => stay.torn);
    for (const { id } of torn) add("torn read", lock, `what ${id} read had changed when it left`);
    if (IN_ORDER.includes(kindOf(lock)))
      for (const detail of overtakings(real, history)) add("overtaken", lock, detail);
  }
  for (const { lock, who, waited } of stallsOf(history, limits)) {
    if (waited > patienceFor(lock, limits) * MS)
      add("stuck", lock, `${who} waited ${inMs(waited)} ms for what was free`);
  }
  for (const { lock, value, writes } of counters) {
    if (value === writes || doubtful.has(lock)) continue;
    add("lost update", lock, `${writes} increments were written, the counter says ${value}`);
  }
  for (const { lock, key, ttl } of remains)
    add("orphan", lock, `it is nobody's, and ${key} is still there (ttl ${ttl})`);
  for (const { lock, available } of rests) {
    if (available !== limits.permits)
      add("sum", lock, `of ${limits.permits} permits ${available} are free, when nobody has any`);
  }
  return findings;
}

/** The last moment at which the holder surely had what it was granted. */
function endOf({ enteredAt, leftAt, lost, permits, process, renewed, until }: Stay, deaths: Deaths): number {
  let end = leftAt ?? enteredAt;
  // Redis keeps a lease for a dead holder, too; nobody knows how far it had been renewed.
  if (leftAt === undefined) end = renewed ? Math.min(deaths.get(process) ?? enteredAt, until) : until;
  else if (lost) end = Math.min(until, leftAt);
  // Of a permit its holder has no clock.
  else if (permits > 0 && !renewed) end = Math.min(until, leftAt);
  return Math.max(end, enteredAt);
}

/** From this moment on the stay may keep no other call out. */
function goneBy(stay: Stay, deaths: Deaths): number {
  const isOver = stay.leftAt !== undefined && !stay.lost;
  if (isOver && (stay.permits === 0 || stay.renewed)) return endOf(stay, deaths);
  return Math.max(stay.leftAt ?? 0, endOf(stay, deaths)) + stay.lease * MS;
}

/** Whether two stays exclude each other; permits do so by their sum. */
function excludes(one: Stay, other: Stay): boolean {
  return one.owner !== other.owner && !(one.shared && other.shared);
}

function overlaps(stays: readonly Stay[], { deaths }: History, { permits: most }: Limits): string[] {
  let inside: Stay[] = [];
  return byEntry(stays).flatMap((stay) => {
    inside = inside.filter((other) => endOf(other, deaths) > stay.enteredAt);
    const met = inside.filter((other) => excludes(stay, other));
    inside.push(stay);
    if (stay.permits > 0) {
      const out = sumOf(inside);
      return out > most
        ? [`${out} permits are out when ${stay.id} enters: ${inside.map(({ id }) => id).join()}`]
        : [];
    }
    const last = met.reduce<Stay | undefined>(
      (found, other) => (found && endOf(found, deaths) > endOf(other, deaths) ? found : other),
      undefined,
    );
    return last
      ? [`${stay.id} entered ${inMs(endOf(last, deaths) - stay.enteredAt)} ms before ${last.id} was out`]
      : [];
  });
}

/**
 * The witness is a register that is changed inside the lock, so its order is that of one server and not of clocks. Who
 * left in order had left the register before, unless its lease ended before that command arrived.
 */
function intrusions(stays: readonly Stay[], { deaths }: History, { permits: most }: Limits): string[] {
  const byVisit = new Map(stays.flatMap((stay) => stay.visits.map((visit) => [visit, stay] as const)));
  const isOver = (one: Stay, next: Stay) => {
    const { leftAt, lost, until, renewed } = one;
    if (leftAt !== undefined && !lost && (renewed || until > next.enteredAt)) return false;
    return endOf(one, deaths) <= next.enteredAt;
  };
  return stays.flatMap((stay) => {
    const met = stay.met.flatMap((visit) => byVisit.get(visit) ?? []);
    const inside = met.filter((other) => !isOver(other, stay) && endOf(stay, deaths) > other.enteredAt);
    if (stay.permits === 0) return inside.map(({ id }) => `${stay.id} found ${id} inside`);
    // All that it met had begun, and none had ended, when the last of them began.
    const last = Math.max(stay.enteredAt, ...met.map(({ enteredAt }) => enteredAt));
    const out = sumOf([stay, ...met].filter((each) => endOf(each, deaths) > last));
    return out > most ? [`${stay.id} met ${out} permits inside`] : [];
  });
}

/**
 * A grant that existed when another call was made has the lower token. Without force, a holder that was inside before
 * has the lower token, too. Nested stays share the token of their owner.
 */
function tokenSlips(stays: readonly Stay[], forced: boolean): string[] {
  const tokened = byEntry(stays.filter(({ token }) => token !== undefined));
  const slip = (one: Stay, other: Stay) =>
    `${one.id} got the token ${one.token}, and ${other.id} ${other.token} before it`;
  const byToken = new Map(tokened.map((stay) => [stay.token, stay]));
  const found = tokened.flatMap((stay) => {
    const twin = byToken.get(stay.token) as Stay;
    return twin.owner === stay.owner ? [] : [slip(twin, stay)];
  });
  const sinceOf = (stay: Stay) => (forced ? stay.askedAt : stay.enteredAt);
  let highest: Stay | undefined;
  let next = 0;
  for (const stay of [...tokened].sort((a, b) => sinceOf(a) - sinceOf(b))) {
    for (let before = tokened[next]; before && before.enteredAt < sinceOf(stay); before = tokened[++next]) {
      if (!highest || (before.token as bigint) > (highest.token as bigint)) highest = before;
    }
    if (highest && highest.owner !== stay.owner && (highest.token as bigint) > (stay.token as bigint))
      found.push(slip(stay, highest));
  }
  return found;
}

/**
 * A call that stood in the queue when another call was made is served before it. Nothing more is certain: if two calls
 * were under way at the same time, only the server knows which came first. An owner that is inside overtakes nobody. A
 * fault, or a process that stands still, makes a place uncertain.
 */
function overtakings(stays: readonly Stay[], { outages = [], stalls }: History): string[] {
  const entered = byEntry(stays);
  const outermost = new Map<string, Stay>();
  for (const stay of entered) if (!outermost.has(stay.owner)) outermost.set(stay.owner, stay);
  const isSure = ({ process, askedAt, enteredAt }: Stay) =>
    [...outages, ...(stalls?.get(process) ?? [])].every(
      ({ from, until }) => until + COMES_BACK < askedAt || from > enteredAt,
    );
  let first: Stay | undefined;
  // From the last entry to the first: of the stays that entered later, the first in the queue.
  return entered.reverse().flatMap((stay) => {
    const passed = first;
    const { id, place, askedAt, owner } = stay;
    if (place !== undefined && place < (first?.place ?? Number.POSITIVE_INFINITY) && isSure(stay))
      first = stay;
    if (outermost.get(owner) !== stay || passed?.place === undefined || passed.place >= askedAt) return [];
    return [
      `${id} entered before ${passed.id}, which was in line ${inMs(askedAt - passed.place)} ms before it asked`,
    ];
  });
}

/** Nanoseconds within which a connection is back after a fault. */
const COMES_BACK = 1_000 * MS;

export interface Stall {
  readonly lock: string;
  readonly who: string;
  /** Nanoseconds; negative for a call that was served at once. */
  readonly waited: number;
}

export function patienceFor(lock: string, { patience, groupPatience = patience }: Limits): number {
  return kindOf(lock) === "multi" ? groupPatience : patience;
}

/** How long each call waited after the lock had last become free, or after an outage had ended. */
export function stallsOf({ stays, deaths, asks = [], outages = [] }: History, limits: Limits): Stall[] {
  const locks = groupByLock(stays);
  const vain = groupByLock(asks);
  const dead = [...deaths.values()].map((at) => ({ from: at, until: at + limits.absence * MS }));
  return [...new Set([...locks.keys(), ...vain.keys()])].flatMap((lock) => {
    const mine = locks.get(lock) ?? [];
    const unserved = vain.get(lock) ?? [];
    const known = [...outages, ...dead];
    const inside = mine.map((stay) => ({ from: stay.enteredAt, until: goneBy(stay, deaths) }));
    // To a reader, a writer closes the lock, and may already do so while it waits.
    const writers = mine.filter(({ shared }) => !shared);
    const writing = writers.map((stay) => ({ from: stay.askedAt, until: goneBy(stay, deaths) }));
    const waiting = unserved
      .filter(({ shared }) => !shared)
      .map(({ askedAt, until }) => ({ from: askedAt, until }));
    const isOfPermits = [...mine, ...unserved].some(({ permits }) => permits > 0);
    const closedTo = {
      all: lastClosed([...known, ...(isOfPermits ? crowded(mine, deaths, limits) : inside)]),
      readers: lastClosed([...known, ...writing, ...waiting]),
    };
    const calls = [
      ...mine.map(({ id: who, shared, askedAt, enteredAt: until }) => ({ who, shared, askedAt, until })),
      ...unserved.map(({ shared, askedAt, until }) => ({ who: "a call", shared, askedAt, until })),
    ];
    return calls.map(({ who, shared, askedAt, until }) => {
      const free = closedTo[shared ? "readers" : "all"](until);
      return { lock, who, waited: until - Math.max(free, askedAt) };
    });
  });
}

/** The periods in which a call that wants many permits may have found too few. */
function crowded(stays: readonly Stay[], deaths: Deaths, { permits, largest }: Limits): Outage[] {
  const changes = stays.flatMap((stay) => [
    { at: stay.enteredAt, by: stay.permits },
    { at: goneBy(stay, deaths), by: -stay.permits },
  ]);
  const found: Outage[] = [];
  let out = 0;
  let since: number | undefined;
  for (const { at, by } of changes.sort((a, b) => a.at - b.at)) {
    out += by;
    if (out > permits - largest) since ??= at;
    else if (since !== undefined) {
      found.push({ from: since, until: at });
      since = undefined;
    }
  }
  return since === undefined ? found : [...found, { from: since, until: Number.POSITIVE_INFINITY }];
}

/** Returns, for an instant, until when the closings that began before it kept the lock closed. */
function lastClosed(known: readonly Outage[]): (instant: number) => number {
  const sorted = [...known].sort((a, b) => a.from - b.from);
  let closed = 0;
  const closedSince = sorted.map(({ until }) => {
    closed = Math.max(closed, until);
    return closed;
  });
  return (instant) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] as Outage).from < instant) low = middle + 1;
      else high = middle;
    }
    return closedSince[low - 1] ?? 0;
  };
}

function byEntry(stays: readonly Stay[]): Stay[] {
  return [...stays].sort((a, b) => a.enteredAt - b.enteredAt);
}

function sumOf(stays: readonly Stay[]): number {
  return stays.reduce((sum, { permits }) => sum + permits, 0);
}

function inMs(ns: number): string {
  return (ns / MS).toFixed(3);
}
