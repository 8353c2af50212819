/**
 * What the processes of a fleet wrote down, as a history: the stays in each lock, and the calls that got nothing.
 * Instants are nanoseconds on the one monotonic clock that all processes of a machine share.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const MS = 1_000_000;

/** A call, with what was answered to it. */
export interface Entry {
  readonly id: string;
  readonly process: string;
  readonly at: number;
  readonly call: string;
  readonly names: readonly string[];
  readonly side?: "read" | "write";
  readonly permits?: number;
  /** The acquire that a release or a visit belongs to. */
  readonly of?: string;
  /** Of a release: whether the holder still believed in its hold. */
  readonly held?: boolean;
  /** The owner of a nested call. */
  readonly by?: string;
  /** Undefined if the call has no answer. */
  answeredAt?: number;
  answer: Answer;
}

interface Answer {
  readonly granted?: boolean;
  /** Why nothing was granted: "held", "timeout", "upgrade", "silence" or "lost". */
  readonly because?: string;
  readonly owner?: string;
  readonly token?: string;
  /** Milliseconds for which a dead holder's lock may stay closed. */
  readonly lease?: number;
  readonly renewed?: boolean;
  /** The earliest end of the lease by the holder's clock. */
  readonly until?: number;
  /** Since when the call surely stood in the queue. */
  readonly place?: number;
  readonly permits?: number;
  /** The visits that the witness still saw inside. */
  readonly met?: readonly string[];
  readonly torn?: boolean;
  /** The write may have arrived after the end of the hold. */
  readonly late?: boolean;
  readonly done?: boolean;
}

/** One stay inside a lock, or with some permits. */
export interface Stay {
  readonly lock: string;
  /** The id of its acquire. */
  readonly id: string;
  readonly process: string;
  /** Nested stays have the owner of the outermost one; of permits it is the stay itself. */
  readonly owner: string;
  /** Whether other shared stays may be inside at the same time: a reader. */
  readonly shared: boolean;
  /** 0 for a lock. */
  readonly permits: number;
  readonly askedAt: number;
  readonly enteredAt: number;
  /** When the lease may be over; Infinity for what has none. */
  readonly until: number;
  readonly renewed: boolean;
  readonly lease: number;
  /** Right before the release; undefined if there was none: then the process must have died. */
  readonly leftAt: number | undefined;
  /** The holder found that its hold was over. */
  readonly lost: boolean;
  /** Permits that the library refused to take back, and when. */
  readonly refusedAt: number | undefined;
  readonly token: bigint | undefined;
  readonly place: number | undefined;
  readonly visits: readonly string[];
  readonly met: readonly string[];
  readonly torn: boolean;
}

/** A period in which no call can be sure to be served, such as a fault. */
export interface Outage {
  readonly from: number;
  readonly until: number;
}

/** A call that waited and got nothing. */
export interface Ask {
  readonly lock: string;
  readonly shared: boolean;
  readonly permits: number;
  readonly askedAt: number;
  readonly until: number;
}

/** When each killed process was sent its SIGKILL. */
export type Deaths = ReadonlyMap<string, number>;

export interface Journals {
  readonly entries: readonly Entry[];
  readonly stays: readonly Stay[];
  readonly asks: readonly Ask[];
  /** When a process stood still for a poll or longer. */
  readonly stalls: ReadonlyMap<string, readonly Outage[]>;
  /** Locks of which a write may have come too late: their counters prove nothing. */
  readonly doubtful: ReadonlySet<string>;
}

/** Milliseconds: the server's clock has whole ones, and a permit's lease is measured by that alone. */
const PERMIT_SKEW = 50;

/** The journals in a folder: a file for each process, named like it. */
export function readJournals(folder: string): Journals {
  const entries = new Map<string, Entry>();
  const stalls = new Map<string, Outage[]>();
  const lost = new Set<string>();
  for (const process of readdirSync(folder)) {
    // The last line of a killed process may be incomplete.
    for (const text of readFileSync(join(folder, process), "utf8").split("\n").slice(0, -1)) {
      const { id, at, call, ...line } = JSON.parse(text);
      if (call) entries.set(id, { id, process, at, call, ...line, answer: {} });
      else if (line.stall) {
        const [from, until] = line.stall;
        stalls.set(process, [...(stalls.get(process) ?? []), { from, until }]);
      } else if (line.lost) lost.add(line.of);
      else {
        const entry = entries.get(id) as Entry;
        entry.answeredAt ??= at;
        entry.answer = { ...entry.answer, ...line };
      }
    }
  }
  return { ...staysOf([...entries.values()], lost), stalls };
}

function staysOf(entries: readonly Entry[], lost: ReadonlySet<string>): Omit<Journals, "stalls"> {
  const releases = new Map<string, Entry>();
  const visits = new Map<string, Entry[]>();
  const asks: Ask[] = [];
  const stays: Stay[] = [];
  for (const entry of entries) {
    const { call, of = "" } = entry;
    if (call === "release") releases.set(of, entry);
    if (call === "visit") visits.set(of, [...(visits.get(of) ?? []), entry]);
  }
  for (const entry of entries) {
    const { call, names, at: askedAt, answer, answeredAt: until, side, permits = 0 } = entry;
    if ((call !== "acquire" && call !== "drain") || until === undefined) continue;
    for (const lock of names) {
      if (answer.granted) stays.push(stayIn(lock, entry, releases.get(entry.id), visits.get(entry.id), lost));
      else if (answer.because === "timeout")
        asks.push({ lock, shared: side === "read", permits, askedAt, until });
    }
  }
  const late = entries.filter(({ answer }) => answer.late);
  return { entries, stays, asks, doubtful: new Set(late.flatMap(({ names }) => names)) };
}

function stayIn(
  lock: string,
  { id, process, at: askedAt, answeredAt, side, answer }: Entry,
  release: Entry | undefined,
  visits: readonly Entry[] = [],
  lost: ReadonlySet<string>,
): Stay {
  const { permits = 0, lease = 0, renewed = true, token, place } = answer;
  const leased = lease > 0 ? askedAt + (lease - PERMIT_SKEW) * MS : Number.POSITIVE_INFINITY;
  const isRefused = permits > 0 && release?.answer.done === false;
  return {
    lock,
    id,
    process,
    owner: answer.owner ?? id,
    shared: side === "read",
    permits,
    askedAt,
    enteredAt: answeredAt as number,
    until: answer.until ?? leased,
    renewed,
    lease,
    leftAt: release?.at,
    lost: lost.has(id) || isRefused || release?.held === false,
    refusedAt: isRefused && !lost.has(id) ? release.answeredAt : undefined,
    token: token === undefined ? undefined : BigInt(token),
    place,
    visits: visits.map((visit) => visit.id),
    met: visits.flatMap((visit) => visit.answer.met ?? []),
    torn: visits.some((visit) => visit.answer.torn),
  };
}

export function groupByLock<T extends { readonly lock: string }>(all: readonly T[]): Map<string, T[]> {
  const locks = new Map<string, T[]>();
  for (const each of all) {
    const known = locks.get(each.lock);
    if (known) known.push(each);
    else locks.set(each.lock, [each]);
  }
  return locks;
}

/** `fair-3` is of the kind "fair". */
export function kindOf(lock: string): string {
  return lock.slice(0, lock.indexOf("-"));
}
