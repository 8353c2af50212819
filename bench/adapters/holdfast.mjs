import { make, version } from "../lib/holdfast.mjs";

export const meta = {
  name: "holdfast",
  version,
  package: ".",
  client: "ioredis",
  can: ["masters", "renew", "nest"],
  notes: "getLock, bare lock(); RedLock on several masters",
};

export const create = make((clients, key, { RedLock }) => {
  const locks = clients.map((client) => client.getLock(key));
  return locks.length === 1 ? locks[0] : new RedLock(...locks);
});
