/** The keys of a read-write lock, and the holds in them. */
import { held, LOCK, ME, type Message, type Scores, type States, scored, TOMBSTONE, text } from "./bench.js";

export const CHANNEL = "redisson_rwlock:{job}";
export const WRITERS = "holdfast_writers:{job}";
/** The field of ME as a writer. */
export const MY_WRITE: string = `${ME}:write`;
export const SIDE_TOMBSTONE: string = `${TOMBSTONE}:write`;
/** The tombstone of ME's write side. */
export const sideBuried = (found: number): States => ({ [SIDE_TOMBSTONE]: text(String(found), 40_000) });
export const THIRD = "6e3814a1-e847-452b-a982-45baf93a1df2:3";

export function holdKey(owner: string, number: number, base = `{${LOCK}}`): string {
  return `${base}:${owner}:rwlock_timeout:${number}`;
}

/**
 * The keys of an owner's read holds, numbered from 1, with these remaining ms; 0 stands for a key that has expired. A reader of
 * this library has the first key only.
 */
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

/** Waiting writers, and until when they count as alive. */
export const waits = (writers: Scores["members"], ttl = 40_000): States => ({
  [WRITERS]: scored(writers, ttl),
});

/** The message for all waiters: `0` when the last reader leaves, `1` when the writer does. */
export const announced = (payload: "0" | "1"): Message[] => [{ channel: CHANNEL, payload }];
