const ENDLESS = 3_600_000;

export function create({ redis, load, lease, told }) {
  const { Mutex } = load("redis-semaphore");
  const mutex = (name, options) =>
    new Mutex(redis, name, { lockTimeout: lease, onLockLost: () => told(name), ...options });
  return {
    take: async (name) => {
      const taken = mutex(name, { acquireTimeout: ENDLESS });
      await taken.acquire();
      return taken;
    },
    tryTake: async (name) => {
      const tried = mutex(name, { acquireAttemptsLimit: 1 });
      return (await tried.tryAcquire()) ? tried : undefined;
    },
    giveBack: (taken) => taken.release(),
    isHeld: ({ isAcquired }) => isAcquired,
  };
}
