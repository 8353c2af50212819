/**
 * What happened inside locks, as the witness wrote it down: stays ("sections") on the one monotonic clock that all
 * processes of a machine share (`process.hrtime.bigint()`). Instants are nanoseconds.
 *
 * What a holder claims is taken at its word, and no further: a section lasts from the grant to the last moment before
 * the unlock was sent, for the hold that its own clock had declared over only to that deadline, and for a process that
 * was killed to the kill, or to the deadline before it of a lease that nobody renewed.
 */

/** A place in a line that the server keeps, and who may not come before it. */
export interface Place {
  /** When the call knew that it had it. */
  readonly at: bigint;
  /** Of all who ask later, or of those who want to read. */
  readonly before: "all" | "readers";
}

/** One stay inside a lock. */
export interface Section {
  readonly lock: string;
  /** Unique to this stay. */
  readonly id: string;
  readonly process: string;
  /** Who stays; nested stays have the owner of the outermost. */
  readonly owner: string;
  /** Others that are shared may be inside as well: a reader. */
  readonly shared: boolean;
  /** When the call that got it was made; of a nested one, the outermost. */
  readonly askedAt: bigint;
  /** Undefined if the call was granted at once, or the lock keeps no places. */
  readonly place: Place | undefined;
  readonly enteredAt: bigint;
  /** When the lease is over by the holder's clock; undefined if it is renewed. */
  readonly deadline: bigint | undefined;
  /** Undefined if it was never left: then its process must have died. */
  readonly leftAt: bigint | undefined;
  /** Set when the holder found at its end that its hold was over: the deadline that it last knew of. */
  readonly lostAt: bigint | undefined;
  /** Milliseconds for which a dead holder's lock may stay closed. */
  readonly lease: number;
  /** The fencing token. */
  readonly token: bigint | undefined;
  /** Whom the witness still saw inside when this one entered, sharers among themselves left out. */
  readonly intruded: readonly string[];
  /** What a reader read had changed before it left. */
  readonly torn: boolean;
}

/** When each killed process was sent its SIGKILL. */
export type Deaths = ReadonlyMap<string, bigint>;

/**
 * A time in which nobody can be sure to be served: servers were away, or the way to them, or a process stood still that may
 * have been granted anything.
 */
export interface Outage {
  readonly from: bigint;
  readonly until: bigint;
}

export const MS = 1_000_000n;

export function groupByLock(sections: readonly Section[]): Map<string, Section[]> {
  const locks = new Map<string, Section[]>();
  for (const section of sections) {
    const known = locks.get(section.lock);
    if (known) known.push(section);
    else locks.set(section.lock, [section]);
  }
  return locks;
}

/** The last moment at which the holder surely took itself for one. */
export function endOf(section: Section, deaths: Deaths): bigint {
  const { enteredAt, deadline, leftAt, lostAt, process } = section;
  const end = lostAt ?? leftAt ?? deaths.get(process) ?? enteredAt;
  return later(leftAt === undefined && deadline !== undefined && deadline < end ? deadline : end, enteredAt);
}

/** False if its lease was over before its holder came to use the lock. */
export function wasInside({ enteredAt, deadline, lostAt }: Section): boolean {
  const over = lostAt ?? deadline;
  return over === undefined || over > enteredAt;
}

/** From when on nothing of the section may keep others out. */
export function goneBy(section: Section, deaths: Deaths): bigint {
  const end = endOf(section, deaths);
  return section.leftAt === undefined ? end + BigInt(section.lease) * MS : end;
}

export function inOrderOf(instant: "enteredAt" | "askedAt", sections: readonly Section[]): Section[] {
  return [...sections].sort((a, b) => (a[instant] < b[instant] ? -1 : a[instant] > b[instant] ? 1 : 0));
}

export function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

export function inMs(ns: bigint): string {
  return (Number(ns) / 1e6).toFixed(3);
}
