/**
 * Records who had which lock, and when. Each look at Redis is compared with the look before. Of holds that the client
 * itself takes while somebody looks on, its events tell, so that none of these is too short to be seen.
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

interface Open extends Pick<Entry, "name" | "kind" | "ownerId" | "label"> {
  readonly since: number;
  /** Holds of the owner, of which events tell. Undefined if only looks tell of them. */
  count?: number | undefined;
}

/** How many entries are kept: enough for the page's picture of the last minutes. */
const KEPT = 2_000;
const KINDS: ReadonlySet<string> = new Set(["lock", "fair", "fenced", "readwrite"]);

export class History {
  readonly entries: Entry[] = [];
  readonly #client: LockClient;
  /** Holds by lock and owner. */
  readonly #open = new Map<string, Open>();
  /** Since when the waiters of the last look wait, by lock and owner. */
  #waiting = new Map<string, number>();
  #fresh: Entry[] = [];
  #first = true;
  /** When the last look was. */
  #seenAt = 0;

  constructor(client: LockClient) {
    this.#client = client;
  }

  /** Listens to the client's events, until the returned function is called. What happens after that is not known. */
  follow(): () => void {
    for (const open of this.#open.values()) open.count = undefined;
    this.#waiting.clear();
    this.#first = true;
    const granted = (event: LockEvents["acquired"]) => this.#granted(event);
    const released = (event: LockEvents["released"]) => this.#gone(event, "released");
    const lost = (event: LockEvents["lost"]) =>
      this.#gone(event, event.reason === "forced" ? "unlocked" : "lost");
    this.#client.on("acquired", granted).on("released", released).on("lost", lost);
    return () => this.#client.off("acquired", granted).off("released", released).off("lost", lost);
  }

  /** The entries that were not taken before. */
  take(): readonly Entry[] {
    const fresh = this.#fresh;
    this.#fresh = [];
    return fresh;
  }

  /** Compares what a look has shown, all locks that are held, with what was known. */
  compare(locks: readonly LockInfo[]): void {
    const now = wallTime();
    const seen = new Set<string>();
    const waiting = new Map<string, number>();
    for (const info of locks) {
      for (const { ownerId, since: told, client } of info.holders) {
        const key = keyOf(info.name, ownerId);
        seen.add(key);
        // A hold of this client of which no event told is over: this look began before its end.
        if (this.#open.has(key) || (!this.#first && ownerId.startsWith(this.#client.id))) continue;
        const since = Math.min(now, told?.getTime() ?? now);
        const open = { name: info.name, kind: info.kind, ownerId, label: client?.label ?? null, since };
        this.#open.set(key, open);
        const asked = this.#waiting.get(key);
        const waited = asked === undefined ? {} : { waited: Math.max(0, since - asked) };
        if (!this.#first) this.#add(since, "granted", open, waited);
      }
      for (const [ownerId, since] of waitersOf(info)) {
        const key = keyOf(info.name, ownerId);
        waiting.set(key, since ?? this.#waiting.get(key) ?? now);
      }
    }
    for (const [key, open] of this.#open) {
      if (seen.has(key) || open.count !== undefined) continue;
      this.#open.delete(key);
      // The first look shows what ended while nobody looked on, and not when.
      const held = this.#first ? { seen: Math.max(open.since, this.#seenAt) } : { held: now - open.since };
      this.#add(now, "released", open, held);
    }
    this.#waiting = waiting;
    this.#seenAt = now;
    this.#first = false;
  }

  /** An operator has taken a lock from its holders. Of those of this client, of which events tell, it is known. */
  unlocked({ name, holders }: LockInfo): void {
    const now = wallTime();
    for (const { ownerId } of holders) {
      const open = this.#open.get(keyOf(name, ownerId));
      if (!open) continue;
      this.#open.delete(keyOf(name, ownerId));
      this.#add(now, "unlocked", open, { held: now - open.since });
    }
  }

  #granted({ lockName: name, kind, ownerId = "", waited, nested }: LockEvents["acquired"]): void {
    if (!KINDS.has(kind)) return;
    const key = keyOf(name, ownerId);
    const known = this.#open.get(key);
    if (known?.count !== undefined) known.count++;
    if (known || nested) return;
    const open = { name, kind, ownerId, label: this.#client.label, since: wallTime(), count: 1 };
    this.#open.set(key, open);
    this.#add(open.since, "granted", open, { waited });
  }

  #gone({ lockName, ownerId = "", held }: LockEvent & { held?: number }, what: Entry["what"]): void {
    const key = keyOf(lockName, ownerId);
    const open = this.#open.get(key);
    if (open?.count === undefined || --open.count > 0) return;
    this.#open.delete(key);
    const now = wallTime();
    this.#add(now, what, open, { held: held ?? now - open.since });
  }

  #add(
    at: number,
    what: Entry["what"],
    { name, kind, ownerId, label }: Open,
    more: Pick<Entry, "waited" | "held" | "seen">,
  ): void {
    const entry = { at, what, name, kind, ownerId, label, ...more };
    for (const list of [this.entries, this.#fresh]) {
      list.push(entry);
      if (list.length > KEPT) list.shift();
    }
  }
}

function keyOf(name: string, ownerId: string): string {
  return `${ownerId} ${name}`;
}

/** All waiters that are known by their owner, and since when they wait. */
function* waitersOf(info: LockInfo): Generator<[ownerId: string, since: number | undefined]> {
  for (const ownerId of info.waiters) yield [ownerId, undefined];
  for (const { ownerId, since } of info.waiting) {
    if (ownerId !== undefined) yield [ownerId, since?.getTime()];
  }
}
