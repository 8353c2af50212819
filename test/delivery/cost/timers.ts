/** Counts timers; import it before any module that sets timers. */
import timersOfNode from "node:timers";

/** The running timers, also those that keep no process alive and that Node does not list. */
export const timers: Set<unknown> = new Set();

const { setTimeout: set, clearTimeout: clear } = timersOfNode;

const setTimeout = ((callback: (...args: unknown[]) => void, ms: number, ...args: unknown[]) => {
  const fire = (): void => {
    timers.delete(timer);
    callback(...args);
  };
  const timer = set(fire, ms);
  timers.add(timer);
  return timer;
}) as typeof set;

const clearTimeout: typeof clear = (timer) => {
  timers.delete(timer);
  clear(timer);
};

for (const place of [globalThis, timersOfNode]) Object.assign(place, { setTimeout, clearTimeout });
