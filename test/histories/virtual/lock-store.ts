/**
 * A server that keeps one lock as the library's scripts do: reentrant, fenced, with a read side, or fair. Without a
 * planted mistake it is right; each mistake stands at the place where it acts.
 */
import type { Side } from "../specs.js";
import type { Mistake } from "./mistakes.js";
import type { World } from "./world.js";

export type LockKind = "lock" | "fair" | "read-write";

export interface Attempt {
  readonly owner: string;
  readonly side: Side;
  /** Milliseconds. */
  readonly lease: number;
  /** The same id for all attempts of one call. */
  readonly request: string;
  /** Whether a refused caller stays in the queue. */
  readonly waits: boolean;
  /** The time on the caller's clock. */
  readonly clientNow: number;
}

export type Reply =
  | { readonly granted: true; readonly token: bigint; readonly count: number }
  /** "line": other waiters go first; "over": the call had been given up. */
  | { readonly granted: false; readonly because: "held" | "upgrade" | "line" | "over"; readonly ttl: number };

interface Held {
  readonly owner: string;
  count: number;
  until: number;
  token: bigint;
}

const NEVER = Number.POSITIVE_INFINITY;

export class LockStore {
  readonly #world: World;
  readonly #kind: LockKind;
  /** Milliseconds for which a waiter counts as alive after its last sign of life. */
  readonly #alive: number;
  #writer: Held | undefined;
  readonly #readers = new Map<string, Held>();
  /** The waiters and when their places end: all waiters of a fair lock, the writers of a read-write lock. */
  readonly #line = new Map<string, number>();
  #tokens = 0n;
  readonly #granted = new Map<string, Reply>();
  readonly #over = new Set<string>();
  readonly #released = new Map<string, number | undefined>();
  /** What a replica shows that lags behind. */
  #stale = false;

  constructor(world: World, kind: LockKind, alive: number) {
    this.#world = world;
    this.#kind = kind;
    this.#alive = alive;
  }

  acquire(attempt: Attempt): Reply {
    const { owner, side, request, waits } = attempt;
    const late =
      this.#has("lapsed-refuses") && this.#writer !== undefined && this.#writer.until <= this.#world.now;
    this.#prune(this.#has("client-clock") ? attempt.clientNow : this.#world.now);
    if (late) return { granted: false, because: "held", ttl: 1 };
    if (this.#over.has(request) && !this.#has("no-tombstone"))
      return { granted: false, because: "over", ttl: -2 };
    const before = this.#granted.get(request);
    if (before && !this.#has("acquire-resent")) return before;
    const refusal = this.#refusal(attempt);
    if (refusal) {
      if (waits && refusal.because !== "upgrade") this.#enqueue(owner, side);
      return refusal;
    }
    const reply = side === "write" ? this.#write(attempt) : this.#read(attempt);
    this.#line.delete(owner);
    this.#granted.set(request, reply);
    return reply;
  }

  #refusal({ owner, side }: Attempt): Extract<Reply, { granted: false }> | undefined {
    const refused = (because: "held" | "upgrade" | "line", ttl: number) =>
      ({ granted: false, because, ttl }) as const;
    const writer = this.#writer;
    if (writer?.owner === owner) return this.#has("not-reentrant") ? refused("held", 50) : undefined;
    if (writer && !(side === "read" && this.#has("reader-beside-writer"))) {
      return refused("held", writer.until - this.#world.now);
    }
    const again = this.#readers.has(owner);
    if (side === "write") {
      if (again && !this.#has("upgrade-admitted")) return refused("upgrade", 0);
      const others = [...this.#readers.values()].filter((reader) => reader.owner !== owner);
      if (others.length > 0 && !again && !this.#has("writer-beside-readers")) {
        return refused("held", Math.max(...others.map(({ until }) => until)) - this.#world.now);
      }
    }
    const [head] = this.#has("last-first") ? [...this.#line.keys()].reverse() : this.#line.keys();
    const yields =
      this.#kind === "fair" ? !this.#has("barging") : side === "read" && !this.#has("ignores-writers");
    return yields && !again && head !== undefined && head !== owner ? refused("line", NEVER) : undefined;
  }

  #enqueue(owner: string, side: Side): void {
    if (this.#kind === "lock" || side === "read") return;
    this.#line.set(owner, this.#world.now + (this.#has("undying-place") ? 300_000 : this.#alive));
  }

  #write({ owner, lease }: Attempt): Reply {
    const until = this.#world.now + (this.#has("no-ttl") ? NEVER : lease);
    const writer = this.#writer;
    if (writer?.owner === owner) {
      writer.count++;
      if (this.#has("nested-shortens")) writer.until = until;
      else if (this.#has("leases-add-up")) writer.until += lease;
      else writer.until = Math.max(writer.until, until);
      if (this.#has("nested-token")) this.#tokens++;
      return {
        granted: true,
        token: this.#has("nested-token") ? this.#tokens : writer.token,
        count: writer.count,
      };
    }
    if (!this.#has("token-repeats") || this.#world.random.chance(0.5)) this.#tokens++;
    const token = this.#has("token-by-clock")
      ? BigInt(this.#world.now * 1000 + this.#world.between(0, 999_999))
      : this.#tokens;
    this.#writer = { owner, count: 1, until, token };
    return { granted: true, token, count: 1 };
  }

  #read({ owner, lease }: Attempt): Reply {
    const until = this.#world.now + lease;
    const reader = this.#readers.get(owner) ?? { owner, count: 0, until, token: 0n };
    reader.count++;
    reader.until = Math.max(reader.until, until);
    this.#readers.set(owner, reader);
    if (this.#has("reader-shortens")) for (const other of this.#readers.values()) other.until = until;
    if (this.#has("read-cuts-write") && this.#writer)
      this.#writer.until = Math.min(this.#writer.until, until);
    return { granted: true, token: 0n, count: reader.count };
  }

  /** Returns the holds that are left on this side; undefined if there was none. */
  release(owner: string, side: Side, request: string): number | undefined {
    this.#prune();
    if (this.#released.has(request) && !this.#has("release-resent")) return this.#released.get(request);
    const left = this.#take(owner, side);
    if (!this.#has("release-unremembered") || left !== 0) this.#released.set(request, left);
    return left;
  }

  #take(owner: string, side: Side): number | undefined {
    const held = side === "write" ? this.#writer : this.#readers.get(owner);
    if (!held || (held.owner !== owner && !this.#has("frees-others"))) return undefined;
    held.count -= 1;
    if (held.count > 0 && !this.#has("release-frees-all")) return held.count;
    if (side === "read") {
      if (this.#has("frees-other-readers")) this.#readers.clear();
      else this.#readers.delete(owner);
    } else {
      this.#writer = undefined;
      if (this.#has("downgrade-forgotten")) this.#readers.clear();
    }
    const silent =
      this.#has("silent-release") ||
      (this.#has("silent-downgrade") && side === "write" && this.#readers.size > 0);
    if (!silent) this.#world.publish();
    return 0;
  }

  /** Returns false if there is nothing to renew. */
  renew(owner: string, side: Side, lease: number): boolean {
    this.#prune();
    const until = this.#world.now + lease;
    const held = side === "write" ? this.#writer : this.#readers.get(owner);
    if (this.#has("renews-anyones") && held) held.until = Math.max(held.until, until);
    if (this.#has("renews-anyones")) return held !== undefined;
    if (this.#has("renews-all-readers") && side === "read") {
      for (const reader of this.#readers.values()) reader.until = Math.max(reader.until, until);
    }
    if (this.#has("renewal-revives") && side === "write" && held?.owner !== owner) {
      this.#writer = { owner, count: 1, until, token: this.#tokens };
      return true;
    }
    if (held?.owner !== owner) return false;
    held.until = Math.max(held.until, until);
    return true;
  }

  /** Gives a call up: a hold that it was granted is given back, and a later grant is refused. */
  undo(owner: string, side: Side, request: string): true {
    this.#prune();
    if (this.#over.has(request)) return true;
    this.#over.add(request);
    const stood = !this.#has("stays-in-line") && this.#line.delete(owner);
    if (this.#granted.get(request)?.granted && !this.#has("grant-kept")) {
      if (this.#has("undo-frees-all") && this.#writer?.owner === owner) this.#writer.count = 1;
      this.#take(owner, side);
    } else if (stood && !this.#has("silent-abandon")) this.#world.publish();
    return true;
  }

  force(side: Side): boolean {
    const held = this.look(side);
    if (this.#has("force-frees-nothing")) return held;
    if (side === "write") this.#writer = undefined;
    else this.#readers.clear();
    if (held) this.#world.publish();
    return held;
  }

  count(owner: string, side: Side): number {
    this.#prune();
    const held = side === "write" ? this.#writer : this.#readers.get(owner);
    const count = held?.owner === owner ? held.count : 0;
    return this.#has("counts-one") ? Math.min(1, count) : count;
  }

  look(side: Side): boolean {
    this.#prune();
    const held = side === "write" ? this.#writer !== undefined : this.#readers.size > 0;
    if (!this.#has("stale-look")) return held;
    const stale = this.#stale;
    this.#stale = held;
    return stale;
  }

  /** Removes what is over by the server's clock, and waiters whose place is over by the clock of `now`. */
  #prune(now: number = this.#world.now): void {
    if (this.#writer && this.#writer.until <= this.#world.now) this.#writer = undefined;
    for (const [owner, { until }] of this.#readers) {
      if (until <= this.#world.now && !this.#has("zombie-reader")) this.#readers.delete(owner);
    }
    for (const [owner, until] of this.#line) if (until <= now) this.#line.delete(owner);
  }

  #has(mistake: Mistake): boolean {
    return this.#world.has(mistake);
  }
}
