/** A process that holds one fenced lock, and reports the state of its hold. */
import { Redis } from "ioredis";
import { type FencedHold, isLockError, LockClient } from "../../../src/index.js";
import { UNHURRIED } from "../../support/patience.js";
import { until } from "../../support/until.js";

/** The state of a hold at one moment, and the code of the error that `assertHeld` threw. */
export interface Look {
  readonly isHeld: boolean;
  readonly aborted: boolean;
  readonly thrown: string | undefined;
}

let hold: FencedHold | undefined;

function theHold(): FencedHold {
  if (hold === undefined) throw new Error("nothing was taken");
  return hold;
}

function codeOf(error: unknown): string {
  return isLockError(error) ? error.code : String(error);
}

function look(): Look {
  const { isHeld, signal } = theHold();
  const { aborted } = signal;
  let thrown: string | undefined;
  try {
    theHold().assertHeld();
  } catch (error) {
    thrown = codeOf(error);
  }
  return { isHeld, aborted, thrown };
}

interface TakeRequest {
  readonly port: number;
  readonly name: string;
  readonly watchdogTimeout: number;
}

/** The handlers for `worker.request`. */
export const handlers: Record<string, (payload: never) => Promise<unknown>> = {
  /** Resolves with the token. */
  take: async ({ port, name, watchdogTimeout }: TakeRequest) => {
    const redis = new Redis({ port, host: "127.0.0.1" });
    redis.on("error", () => {});
    const client = new LockClient(redis, { ...UNHURRIED, watchdogTimeout });
    // Repeated, because a short lease may be over before the grant arrives.
    hold = await until("it is granted in time", () => client.getFencedLock(name).lock());
    hold.signal.addEventListener("abort", () => {});
    return hold.token;
  },
  look: async () => look(),
  unlock: async () => {
    try {
      await theHold().unlock();
      return "unlocked";
    } catch (error) {
      return codeOf(error);
    }
  },
};
