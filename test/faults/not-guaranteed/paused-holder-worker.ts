/** A process that takes a fenced lock, checks it, and then writes late. */
import { Redis } from "ioredis";
import { type FencedHold, isLockError, LockClient } from "../../../src/index.js";

interface TakeRequest {
  readonly port: number;
  readonly name: string;
}

let hold: FencedHold | undefined;

export const handlers = {
  /** Takes and checks the lock, and returns the token of its coming write. */
  async take({ port, name }: TakeRequest): Promise<bigint> {
    const client = new LockClient(new Redis(port), { watchdogTimeout: 3_000 });
    hold = await client.getFencedLock(name).lock();
    hold.assertHeld();
    return hold.token;
  },

  /** What the process knows of its hold when it goes on. */
  async knows(): Promise<{ isHeld: boolean; aborted: boolean; unlock: string }> {
    const isHeld = hold?.isHeld ?? false;
    await new Promise((resolve) => setTimeout(resolve, 0));
    const aborted = hold?.signal.aborted ?? false;
    const unlock = await hold?.unlock().then(
      () => "resolved",
      (error: unknown) => (isLockError(error) ? error.code : String(error)),
    );
    return { isHeld, aborted, unlock: unlock ?? "" };
  },
};
