/** The keys of a fair lock, and the queues of waiters in them. */
import {
  CHANNEL,
  held,
  type Later,
  LOCK,
  later,
  ME,
  type Message,
  OTHER,
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
> = { lock: LOCK, queue: QUEUE, timeouts: TIMEOUTS, alive: ALIVE, tombstone: TOMBSTONE, channel: CHANNEL };

/** How long a silent waiter counts as alive. */
export const PATIENCE = 20_000;
/** The time of a call that does not wait. */
export const NO_WAIT = 0;
export const JAVA_2 = "b0e5b1a2-0000-4000-8000-000000000000:8";

/** Who has the lock in most rows. */
export const JAVA_HOLDER = "b0e5b1a2-0000-4000-8000-000000000000:9";

export const theirs = (ttl: number): States => ({ [LOCK]: held({ [JAVA_HOLDER]: "2" }, ttl) });

/** The waiters by their short names: of this library, two of a client that is gone, and of Redisson. */
const WAITERS: Readonly<Record<string, string>> = {
  ...{ me: ME, other: OTHER, third: THIRD, gone: "gone:8", gone2: "gone:9" },
  ...{ java: JAVA, java2: JAVA_2, java3: JAVA_HOLDER },
};

/** A time of the notation of `queue`. */
function timeOf(word = "-"): number | Later | undefined {
  if (word === "-") return undefined;
  if (word === "heard") return later(PATIENCE);
  // The last chance of a dead waiter was over.
  if (word === "lapsed") return -0.5;
  const ms = Number(word.replace(/^~|_/g, ""));
  return word.startsWith("~") ? later(ms) : ms;
}

/**
 * Reads each waiter's name, when its ticket lapses, and until when it counts as alive, in server ms since the last
 * `put`. `~` counts since the script ran; `heard` means that its process tried just now; `-` means no time.
 */
export function queue(text: string, aliveTtl = 1_000_000): States {
  const places = text.split(", ").map((place) => {
    const [name = "", due, alive] = place.split(" ");
    return { waiter: WAITERS[name] ?? name, due: timeOf(due), alive: timeOf(alive) };
  });
  const known = (which: "due" | "alive") =>
    Object.fromEntries(places.flatMap(({ waiter, [which]: at }) => (at === undefined ? [] : [[waiter, at]])));
  const [due, alive] = [known("due"), known("alive")];
  return {
    [QUEUE]: { value: places.map(({ waiter }) => waiter), ttl: -1 },
    ...(Object.keys(due).length > 0 && { [TIMEOUTS]: scored(due) }),
    ...(Object.keys(alive).length > 0 && { [ALIVE]: scored(alive, aliveTtl) }),
  };
}

/** The channel on which a waiter is woken. */
function wakeChannel(waiter: string): string {
  return `${CHANNEL}:${waiter}`;
}

/** Only this waiter was told that the lock is free. */
export function woken(waiter: string): Message[] {
  return [{ channel: wakeChannel(waiter), payload: "0" }];
}
