/**
 * Records who had which lock, and when. It compares each look at Redis with the look before. Of the client's own locks
 * it learns by events, so that no hold of this process is too short to be seen.
 */
import { wallTime } from "../../base/platform.js";
import type { LockClient, LockEvent, LockEvents, LockInfo } from "../../index.js";

/** Times are epoch milliseconds, durations milliseconds. */
export interface Entry {
  readonly at: number;
  readonly what: "granted" | "released" | "lost" | "unlocked";
  readonly name: string;
  readonly kind: string;
  readonly ownerId: string;
  /** The label of the owner's process, if presence knows it. */
  readonly label: string | null;
  readonly waited?: number;
  readonly held?: number;
  /** Of an end that came while nobody looked on: when the hold was last seen. */
  readonly seen?: number;
}

interface Open {
  readonly info: Pick<LockInfo, "name" | "kind">;
  readonly ownerId: string;
  readonly since: number;
  /** The look that was under way when the hold was first seen: it may have read the lock before. */
  readonly look: number;
  label: string | null;
  /**
   * Holds of the owner: those that a look has shown, and what events have told since. Undefined for a hold of which
   * nothing was told for a while: the next look counts.
   */
  count: number | undefined;
}

/** How many entries are kept: enough for the page's picture of the last minutes. */
const KEPT = 2_000;
const KINDS: ReadonlySet<string> = new Set(["lock", "fair", "fenced", "readwrite"]);

export class History {
  /** Holds by lock and owner. */
  readonly #open = new Map<string, Open>();
  /** Holds that have changed since the look began: the look may show them as they were. */
  readonly #changed = new Set<string>();
  /** Holds that an operator is about to end, and that nothing has told of yet. */
  readonly #forced = new Set<string>();
  /** Since when the waiters of the last look wait, by lock and owner. */
  #waiting = new Map<string, number>();
  readonly #entries: Entry[] = [];
  readonly #tell: () => void;
  #told = 0;
  #look = 0;
  #first = true;
  /** When the last look was. */
  #seenAt = 0;

  /** `tell` is called when there is something to {@link take}. */
  constructor(tell: () => void) {
    this.#tell = tell;
  }

  /** Listens to a client's events, until the returned function is called. What happens after that is not known. */
  follow(client: LockClient): () => void {
    for (const open of this.#open.values()) open.count = undefined;
    this.#waiting.clear();
    this.#first = true;
    const acquired = (event: LockEvents["acquired"]) => this.#granted(event);
    const released = (event: LockEvent & { held?: number }) => this.#gone(event, "released", event.held);
    const lost = (event: LockEvent & { held?: number }) => this.#gone(event, "lost", event.held);
    client.on("acquired", acquired).on("released", released).on("lost", lost);
    return () => client.off("acquired", acquired).off("released", released).off("lost", lost);
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** The entries that were not taken before. */
  take(): Entry[] {
    const fresh = this.#entries.slice(Math.max(0, this.#entries.length - this.#told));
    this.#told = 0;
    return fresh;
  }

  beginLook(): void {
    this.#look++;
    this.#changed.clear();
  }

  /** Compares what the look has shown, all locks that are held, with what was known. */
  endLook(locks: readonly LockInfo[]): void {
    const now = wallTime();
    const seen = new Set<string>();
    const waiting = new Map<string, number>();
    for (const info of locks) {
      for (const holder of info.holders) {
        const key = keyOf(info.name, holder.ownerId);
        seen.add(key);
        const label = holder.client?.label ?? null;
        const open = this.#open.get(key);
        const hasChanged = this.#changed.has(key);
        if (open) open.label = label;
        if (open && !hasChanged) open.count ??= holder.count;
        if (open || hasChanged) continue;
        const since = Math.min(now, holder.since?.getTime() ?? now);
        const { ownerId, count } = holder;
        this.#open.set(key, { info, ownerId, since, look: this.#look - 1, label, count });
        const asked = this.#waiting.get(key);
        const waited = asked === undefined ? {} : { waited: Math.max(0, since - asked) };
        if (!this.#first) this.#add(since, "granted", info, ownerId, label, waited);
      }
      for (const [ownerId, since] of waitersOf(info)) {
        const key = keyOf(info.name, ownerId);
        waiting.set(key, since ?? this.#waiting.get(key) ?? now);
      }
    }
    for (const [key, open] of this.#open) {
      if (seen.has(key) || this.#forced.has(key) || open.look >= this.#look) continue;
      this.#open.delete(key);
      // The first look shows what ended while nobody looked on, and not when.
      const held = this.#first ? { seen: Math.max(open.since, this.#seenAt) } : { held: now - open.since };
      this.#add(now, "released", open.info, open.ownerId, open.label, held);
    }
    this.#waiting = waiting;
    this.#seenAt = now;
    this.#first = false;
  }

  /**
   * Runs `force`, by which an operator takes the lock from its holders, and resolves with whether anybody held it. Each
   * end is told once: the client tells of its own holds as lost, and of others nothing.
   */
  async unlock(info: LockInfo, force: () => Promise<boolean>): Promise<boolean> {
    const holders = info.holders.map((holder) => ({ ...holder, key: keyOf(info.name, holder.ownerId) }));
    for (const { key } of holders) this.#forced.add(key);
    try {
      if (!(await force())) return false;
      const now = wallTime();
      for (const { key, ownerId, client } of holders) {
        if (!this.#forced.has(key)) continue;
        const open = this.#open.get(key);
        this.#end(key);
        const held = open ? { held: now - open.since } : {};
        this.#add(now, "unlocked", info, ownerId, client?.label ?? open?.label ?? null, held);
      }
      return true;
    } finally {
      for (const { key } of holders) this.#forced.delete(key);
    }
  }

  #granted({ lockName, kind, ownerId, waited, nested }: LockEvents["acquired"]): void {
    if (ownerId === undefined || !KINDS.has(kind)) return;
    const key = keyOf(lockName, ownerId);
    const open = this.#open.get(key);
    if (open?.count !== undefined) {
      open.count++;
      return;
    }
    if (open || nested) {
      // The first look is under way, and may have counted the owner's holds before: the next one counts them.
      this.#changed.add(key);
      return;
    }
    const info = { name: lockName, kind: kind as LockInfo["kind"] };
    const at = wallTime();
    this.#open.set(key, { info, ownerId, since: at, look: this.#look, label: null, count: 1 });
    this.#add(at, "granted", info, ownerId, null, { waited });
  }

  #gone({ lockName, kind, ownerId }: LockEvent, what: "released" | "lost", held?: number): void {
    if (ownerId === undefined || !KINDS.has(kind)) return;
    const key = keyOf(lockName, ownerId);
    const open = this.#open.get(key);
    if (open?.count === undefined) {
      if (open) this.#changed.add(key);
      return;
    }
    if (--open.count > 0) return;
    this.#end(key);
    const now = wallTime();
    const forced = this.#forced.delete(key) && what === "lost";
    this.#add(now, forced ? "unlocked" : what, open.info, ownerId, open.label, {
      held: held ?? now - open.since,
    });
  }

  #end(key: string): void {
    this.#open.delete(key);
    this.#changed.add(key);
  }

  #add(
    at: number,
    what: Entry["what"],
    { name, kind }: Pick<LockInfo, "name" | "kind">,
    ownerId: string,
    label: string | null,
    more: Pick<Entry, "waited" | "held" | "seen">,
  ): void {
    this.#entries.push({ at, what, name, kind, ownerId, label, ...more });
    this.#told++;
    if (this.#entries.length > KEPT) this.#entries.splice(0, this.#entries.length - KEPT);
    this.#tell();
  }
}

function keyOf(name: string, ownerId: string): string {
  return `${ownerId} ${name}`;
}

/** All waiters that are known by their owner, and since when they wait. */
function* waitersOf(info: LockInfo): Generator<[ownerId: string, since: number | undefined]> {
  for (const ownerId of info.waiters) yield [ownerId, undefined];
  for (const { ownerId, since } of info.waiting ?? []) {
    if (ownerId !== undefined) yield [ownerId, since?.getTime()];
  }
}
