/** A process that holds one lock, stalls its event loop on request, and reports the state of its hold. */
import { Redis } from "ioredis";
import { type Hold, isLockError, LockClient } from "../../src/index.js";
import { UNHURRIED } from "../support/patience.js";
import { SINGLE } from "../support/place/kinds.js";
import { until } from "../support/until.js";

interface TakeRequest {
  readonly port: number;
  readonly name: string;
  /** The name of one of `SINGLE`. */
  readonly kind: string;
  readonly watchdogTimeout?: number;
  readonly lease?: number;
}

/** The state of a hold at one moment, and the error that `assertHeld` threw. */
export interface Look {
  readonly isHeld: boolean;
  readonly aborted: boolean;
  readonly thrown: string | undefined;
  readonly remaining: number;
}

export interface Stall {
  readonly first: Look;
  readonly afterMicrotask: Look;
  readonly later: Look;
  readonly reason: string | undefined;
  readonly lostEvents: number;
}

let redis: Redis | undefined;
let client: LockClient | undefined;
let hold: Hold | undefined;
let lostEvents = 0;
const unhandled: string[] = [];
process.on("unhandledRejection", (reason) => unhandled.push(String(reason)));

function theHold(): Hold {
  if (hold === undefined) throw new Error("nothing was taken");
  return hold;
}

function codeOf(error: unknown): string {
  return isLockError(error) ? error.code : String(error);
}

function look(): Look {
  const isHeld = theHold().isHeld;
  const aborted = theHold().signal.aborted;
  let thrown: string | undefined;
  try {
    theHold().assertHeld();
  } catch (error) {
    thrown = codeOf(error);
  }
  return { isHeld, aborted, thrown, remaining: theHold().remaining };
}

function busy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** The handlers for `worker.request`. */
export const handlers: Record<string, (payload: never) => Promise<unknown>> = {
  take: async ({ port, name, kind: wanted, watchdogTimeout, lease }: TakeRequest) => {
    const kind = SINGLE.find((each) => each.name === wanted);
    if (kind === undefined) throw new Error(`no kind ${wanted}`);
    redis = new Redis({ port, host: "127.0.0.1" });
    redis.on("error", () => {});
    const taking = new LockClient(redis, { ...UNHURRIED, watchdogTimeout });
    client = taking;
    // Repeated, because a short lease may be over before the grant arrives.
    hold = await until("it is granted in time", () =>
      kind.make([taking], name).lock(lease === undefined ? {} : { lease }),
    );
    client.on("lost", () => lostEvents++);
    hold.signal.addEventListener("abort", () => {});
    return hold.ownerId;
  },
  look: async () => look(),
  /** Blocks the event loop for `ms`; `first` is the state right after that. */
  stall: async (ms: number): Promise<Stall> => {
    busy(ms);
    const isHeld = theHold().isHeld;
    const first = { ...look(), isHeld };
    await Promise.resolve();
    const afterMicrotask = look();
    await new Promise((resolve) => setTimeout(resolve, 20));
    const reason = theHold().signal.reason as { reason?: string } | undefined;
    return { first, afterMicrotask, later: look(), reason: reason?.reason, lostEvents };
  },
  unlock: async () => {
    try {
      await theHold().unlock();
      return "unlocked";
    } catch (error) {
      return codeOf(error);
    }
  },
  lostEvents: async () => lostEvents,
  unhandled: async () => unhandled,
  close: async () => {
    await client?.close({ timeout: 0 });
    redis?.disconnect();
  },
};
