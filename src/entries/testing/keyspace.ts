/** Keys, their values and when they lapse. */
import { ReplyError, WRONG_TYPE } from "./reply.js";

export interface Values {
  readonly string: string;
  readonly hash: Map<string, string>;
  readonly list: string[];
  readonly zset: Map<string, number>;
}

export type Type = keyof Values;

interface Entry {
  readonly type: Type;
  readonly value: Values[Type];
  /** Epoch milliseconds. Times of 2^53 and more are served, too. */
  expiresAt: bigint | undefined;
  /** Rises with each new key: SCAN goes on by it. */
  readonly serial: number;
}

const COLLECTIONS: Readonly<Record<Exclude<Type, "string">, () => Values[Type]>> = {
  hash: () => new Map<string, string>(),
  list: () => [],
  zset: () => new Map<string, number>(),
};

export class Keyspace {
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  #serial = 0;

  /** `now`: whole epoch milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  get now(): number {
    return this.#now();
  }

  /** A copy of this keyspace, or an empty one of the same clock. */
  copy(isEmpty = false): Keyspace {
    const copy = new Keyspace(this.#now);
    for (const [key, entry] of isEmpty ? [] : this.#entries)
      copy.#entries.set(key, { ...entry, value: structuredClone(entry.value) });
    copy.#serial = this.#serial;
    return copy;
  }

  typeOf(key: string): Type | undefined {
    return this.#entry(key)?.type;
  }

  /** @throws WRONGTYPE */
  get<T extends Type>(key: string, type: T): Values[T] | undefined {
    const entry = this.#entry(key);
    if (entry && entry.type !== type) throw new ReplyError(WRONG_TYPE);
    return entry?.value as Values[T] | undefined;
  }

  /** The collection of this key, made if there is none. @throws WRONGTYPE */
  open<T extends Exclude<Type, "string">>(key: string, type: T): Values[T] {
    const known = this.get(key, type);
    if (known) return known;
    const value = COLLECTIONS[type]() as Values[T];
    this.#put(key, type, value, undefined);
    return value;
  }

  /** Sets a string, whatever type the key had. `ttl`: null for none; absent: the key keeps its own. */
  setString(key: string, value: string, ttl?: bigint | null): void {
    const kept = ttl === undefined ? this.#entry(key)?.expiresAt : undefined;
    this.#put(key, "string", value, ttl ? BigInt(this.#now()) + ttl : kept);
  }

  delete(key: string): boolean {
    return this.#entry(key) !== undefined && this.#entries.delete(key);
  }

  /** Deletes an empty collection: Redis keeps none. */
  deleteIfEmpty(key: string): void {
    const value = this.#entry(key)?.value;
    if (value === undefined || typeof value === "string") return;
    if ((value instanceof Map ? value.size : value.length) === 0) this.#entries.delete(key);
  }

  /** Milliseconds until the key ends; -1 without end, -2 without key. */
  ttl(key: string): bigint {
    const entry = this.#entry(key);
    if (!entry) return -2n;
    return entry.expiresAt === undefined ? -1n : entry.expiresAt - BigInt(this.#now());
  }

  /** Lets the key end `ttl` milliseconds from now; 0 or less deletes it at once. False without a key. */
  expire(key: string, ttl: bigint): boolean {
    const entry = this.#entry(key);
    if (!entry) return false;
    if (ttl <= 0n) this.#entries.delete(key);
    else entry.expiresAt = BigInt(this.#now()) + ttl;
    return true;
  }

  /** At most `count` keys that came after the one that `cursor` stands for; the next cursor is 0 behind the last one. */
  scan(cursor: number, count: number): { readonly next: number; readonly keys: readonly string[] } {
    const found: [string, Entry][] = [];
    for (const entry of [...this.#entries]) {
      if (entry[1].serial > cursor && this.#entry(entry[0])) found.push(entry);
    }
    const page = found.slice(0, count);
    const next = page.length < found.length ? (page.at(-1)?.[1].serial ?? 0) : 0;
    return { next, keys: page.map(([key]) => key) };
  }

  /**
   * A key is gone as soon as its time is over. Redis keeps the key for that millisecond, which no real clock shows; but
   * tests advance by exactly a lease.
   */
  #entry(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expiresAt === undefined || entry.expiresAt > BigInt(this.#now())) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #put(key: string, type: Type, value: Values[Type], expiresAt: bigint | undefined): void {
    const serial = this.#entry(key)?.serial ?? ++this.#serial;
    this.#entries.set(key, { type, value, expiresAt, serial });
  }
}
