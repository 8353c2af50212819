import { drop, hold } from "../../lib/using.mjs";

export function create({ redis, load, lease, told }) {
  const { default: Redlock } = load("redlock5");
  const redlock = new Redlock([redis]);
  const take = (name, retryCount) =>
    hold((routine) =>
      redlock.using([name], lease, { retryCount }, (signal) => {
        signal.addEventListener("abort", () => told(name));
        return routine(signal);
      }),
    );
  return {
    take: (name) => take(name, -1),
    tryTake: (name) => take(name, 0).catch(() => undefined),
    giveBack: drop,
    isHeld: ({ signal }) => !signal.aborted,
  };
}
