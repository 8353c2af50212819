import { drop, hold } from "../../lib/using.mjs";

const ENDLESS = 1e9;

export function create({ redis, load, lease, told }) {
  const { createLock, IoredisAdapter } = load("redlock-universal");
  const adapter = new IoredisAdapter(redis);
  const take = (name, retryAttempts) =>
    hold((routine) =>
      createLock({ adapter, key: name, ttl: lease, retryAttempts }).using((signal) => {
        signal.addEventListener("abort", () => told(name));
        return routine(signal);
      }),
    );
  return {
    take: (name) => take(name, ENDLESS),
    tryTake: (name) => take(name, 0).catch(() => undefined),
    giveBack: drop,
    isHeld: ({ signal }) => !signal.aborted,
  };
}
