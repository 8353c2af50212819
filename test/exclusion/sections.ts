/**
 * What happened inside locks, as the witness wrote it down: stays ("sections") on the one monotonic clock that all
 * processes of a machine share (`process.hrtime.bigint()`). Instants are nanoseconds.
 *
 * A section counts only for as long as its holder surely relied on the lock. It begins with the grant. It ends at the
 * last moment before the unlock was sent; or at the deadline, if the holder's own clock had ended the hold before; or,
 * for a killed process, at the kill, or at the deadline of a lease without renewal if that came first.
 */

/** A place in a queue that the server keeps, and which calls may not come before it. */
export interface Place {
  /** When the call knew that it had the place. */
  readonly at: bigint;
  /** All later calls, or only those that want to read. */
  readonly before: "all" | "readers";
}

/** One stay inside a lock. */
export interface Section {
  readonly lock: string;
  /** The unique id of this stay. */
  readonly id: string;
  readonly process: string;
  /** The owner; nested stays have the owner of the outermost one. */
  readonly owner: string;
  /** Whether other shared stays may be inside at the same time: a reader. */
  readonly shared: boolean;
  /** When the call was made; for a nested stay, the outermost call. */
  readonly askedAt: bigint;
  /** Undefined if the call was granted at once, or the lock keeps no places. */
  readonly place: Place | undefined;
  readonly enteredAt: bigint;
  /** When the lease is over by the holder's clock; undefined if the watchdog renews it. */
  readonly deadline: bigint | undefined;
  /** Undefined if the holder never left: then its process must have died. */
  readonly leftAt: bigint | undefined;
  /** Set if the holder found at its end that its hold was over: the last deadline that it knew. */
  readonly lostAt: bigint | undefined;
  /** Milliseconds for which a dead holder's lock may stay closed. */
  readonly lease: number;
  /** The fencing token. */
  readonly token: bigint | undefined;
  /** The stays that the witness still saw inside when this one entered; a reader does not count other readers. */
  readonly intruded: readonly string[];
  /** Whether the value that a reader read had changed before the reader left. */
  readonly torn: boolean;
}

/** When each killed process was sent its SIGKILL. */
export type Deaths = ReadonlyMap<string, bigint>;

/**
 * A period in which no call can be sure to be served: servers or connections were down, or a process stood still that
 * may have been granted any lock.
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

/** The last moment at which the holder surely believed that it had the lock. */
export function endOf(section: Section, deaths: Deaths): bigint {
  const { enteredAt, deadline, leftAt, lostAt, process } = section;
  const end = lostAt ?? leftAt ?? deaths.get(process) ?? enteredAt;
  return later(leftAt === undefined && deadline !== undefined && deadline < end ? deadline : end, enteredAt);
}

/** False if the lease was over before the holder came to use the lock. */
export function wasInside({ enteredAt, deadline, lostAt }: Section): boolean {
  const over = lostAt ?? deadline;
  return over === undefined || over > enteredAt;
}

/** From this moment on the section may keep no other call out. */
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
