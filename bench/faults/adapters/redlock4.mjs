export function create({ redis, load, lease }) {
  const Redlock = load("redlock4");
  const redlock = (retryCount) => {
    const made = new Redlock([redis], retryCount === undefined ? {} : { retryCount });
    made.on("clientError", () => {});
    return made;
  };
  const [patient, hasty, plain] = [redlock(-1), redlock(0), redlock()];
  return {
    take: (name) => patient.lock(name, lease),
    tryTake: (name) => hasty.lock(name, lease).catch(() => undefined),
    // With the default number of tries: with endless tries a release would never reject.
    giveBack: (lock) => plain.unlock(lock),
  };
}
