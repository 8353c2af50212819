/** The keys of a fair lock, and the queues of waiters in them. */
import {
  type Announcement,
  CHANNEL,
  held,
  type Later,
  LOCK,
  later,
  type States,
  scored,
  TOMBSTONE,
} from "./bench.js";

export const QUEUE = "redisson_lock_queue:{job}";
export const TIMEOUTS = "redisson_lock_timeout:{job}";
export const ALIVE = "holdfast_alive:{job}";
/** A waiter of another process, which uses Redisson and so is not in the set of those alive. */
export const JAVA = "b0e5b1a2-0000-4000-8000-000000000000:7";
export const THIRD = "6e3814a1-e847-452b-a982-45baf93a1df2:3";
/** The time that Redisson gives each waiter by default. */
export const GRACE = 300_000;

export const FAIR_KEYS: Readonly<
  Record<"lock" | "queue" | "timeouts" | "alive" | "tombstone" | "channel", string>
> = {
  lock: LOCK,
  queue: QUEUE,
  timeouts: TIMEOUTS,
  alive: ALIVE,
  tombstone: TOMBSTONE,
  channel: CHANNEL,
};

/** How long a silent waiter counts as alive. */
export const PATIENCE = 20_000;
/** The time of a call that does not wait. */
export const NO_WAIT = 0;
export const JAVA_2 = "b0e5b1a2-0000-4000-8000-000000000000:8";

export const theirs = (ttl: number): States => ({
  [LOCK]: held({ "b0e5b1a2-0000-4000-8000-000000000000:9": "2" }, ttl),
});

/** Times in ms of the server's clock since the last `put`; without `due` the place has no score. */
export interface Place {
  readonly due?: number | Later | undefined;
  readonly alive?: number | Later | undefined;
}

/** A queue in this order, and the TTL of the set of those alive. */
export function line(places: readonly (readonly [waiter: string, Place])[], aliveTtl = 1_000_000): States {
  const known = (which: keyof Place) =>
    Object.fromEntries(
      places.flatMap(([waiter, { [which]: at }]) => (at === undefined ? [] : [[waiter, at]])),
    );
  const [due, alive] = [known("due"), known("alive")];
  return {
    ...(places.length > 0 && { [QUEUE]: { value: places.map(([waiter]) => waiter), ttl: -1 } }),
    ...(Object.keys(due).length > 0 && { [TIMEOUTS]: scored(due) }),
    ...(Object.keys(alive).length > 0 && { [ALIVE]: scored(alive, aliveTtl) }),
  };
}

export const inLine = (...places: (readonly [waiter: string, Place])[]): States => line(places);

/** The place of a waiter after a try of its process. */
export function heard(due: Place["due"]): Place {
  return { due, alive: later(PATIENCE) };
}

/** The channel on which a waiter is woken. */
function wakeChannel(waiter: string): string {
  return `${CHANNEL}:${waiter}`;
}

/** Only this waiter was told that the lock is free. */
export function woken(waiter: string): Announcement[] {
  return [{ channel: wakeChannel(waiter), payload: "0" }];
}
