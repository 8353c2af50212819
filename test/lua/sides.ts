/** The keys of a read-write lock, and the holds in them. */
import { type Announcement, held, LOCK, ME, type States, TOMBSTONE, text } from "./bench.js";

export const CHANNEL = "redisson_rwlock:{job}";
export const WRITERS = "holdfast_writers:{job}";
/** The field of ME as a writer. */
export const MY_WRITE: string = `${ME}:write`;
export const THIRD = "6e3814a1-e847-452b-a982-45baf93a1df2:3";

export const ENDING_KEYS: { lock: string; channel: string; tombstone: string } = {
  lock: LOCK,
  channel: CHANNEL,
  tombstone: TOMBSTONE,
};
/** The tombstone of a call, which belongs to no wire id; and its state when the call is over. */
export const CALL = "holdfast_over:{job}:6e3814a1-e847-452b-a982-45baf93a1df2:1:7";
export const done: States = { [CALL]: text("1", 20_000) };
/** The marker of a call by force that found nothing. */
export const foundNothing: States = { [CALL]: text("0", 20_000) };

/** Names of locks, and the beginnings of their hold keys. */
export const BASES: Readonly<Record<string, readonly [name: string, base: string]>> = {
  "without braces": ["größe:日本", "{größe:日本}"],
  "with braces": ["{a}:c", "{a}:c"],
};

export function holdKey(owner: string, number: number, base = `{${LOCK}}`): string {
  return `${base}:${owner}:rwlock_timeout:${number}`;
}

/** The keys of an owner's read holds, numbered from 1, with these remaining ms; 0 stands for a key that has expired. */
export function holds(owner: string, terms: readonly number[], base?: string): States {
  const living = terms.flatMap((term, i) =>
    term === 0 ? [] : [[holdKey(owner, i + 1, base), text("1", term)]],
  );
  return Object.fromEntries(living);
}

type Readers = Readonly<Record<string, readonly number[]>>;

const counts = (readers: Readers) =>
  Object.fromEntries(Object.entries(readers).map(([owner, terms]) => [owner, String(terms.length)]));
const keysOf = (readers: Readers): States =>
  Object.assign({}, ...Object.entries(readers).map(([owner, terms]) => holds(owner, terms)));

/** A lock held by readers, by the remaining ms of their holds; its own TTL is the longest of them unless given. */
export function reading(readers: Readers, ttl: number = Math.max(...Object.values(readers).flat())): States {
  return { [LOCK]: held({ mode: "read", ...counts(readers) }, ttl), ...keysOf(readers) };
}

/** A lock that an owner holds for writing `count` times, and for reading with the remaining times in `terms` (ms). */
export function writing(ttl: number, count = "1", terms: readonly number[] = [], owner: string = ME): States {
  const readers = terms.length > 0 ? { [owner]: terms } : {};
  return {
    [LOCK]: held({ mode: "write", [`${owner}:write`]: count, ...counts(readers) }, ttl),
    ...keysOf(readers),
  };
}

/** The message for all waiters: `0` when the last reader leaves, `1` when the writer does. */
export const announced = (payload: "0" | "1"): Announcement[] => [{ channel: CHANNEL, payload }];
