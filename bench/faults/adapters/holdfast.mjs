import { LockClient } from "../../../dist/index.js";

export function create({ redis, lease, options, told }) {
  // A short command timeout would end a call that the table wants to see to its end.
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
