import { LockClient } from "holdfast";

export function create({ redis, lease, options, told }) {
  // A bound of its own on each call would end what is to be seen to its end.
  const client = new LockClient(redis, { watchdogTimeout: lease, commandTimeout: 10 * lease, ...options });
  client.on("lost", ({ lockName }) => told(lockName));
  const take = (name, settings) => client.getLock(name).lock(settings);
  return {
    take,
    takeAgain: (name, hold) => take(name, { owner: hold }),
    tryTake: (name) => client.getLock(name).tryLock(),
    giveBack: (hold) => hold.unlock(),
    isHeld: (hold) => hold.isHeld,
  };
}
