/** `replicas: 1` on a cluster whose slots move, and whose masters hand over. */
import { test } from "vitest";
import { moveSlot, politeFailover, until } from "../support/index.js";
import { SINGLE } from "../support/place/kinds.js";
import { Crew, locksOn, SOON, useReplicatedCluster, waitFor } from "./cluster-crew.js";

const cluster = await useReplicatedCluster();

test("a client that wants a replica's word goes on after slots have moved, and after a master has handed over [B26]", async () => {
  await using crew = new Crew(cluster);
  const { client } = await crew.join({ replicas: 1 });
  const { client: waiter } = await crew.join({ replicas: 1 });
  const master = await cluster.masterFor("here");
  const locks = await locksOn(master, SINGLE);
  const serve = async (): Promise<void> => {
    for (const [kind, name] of locks) {
      const hold = await until("a grant is acknowledged", () => kind.make([client], name).lock(), {
        timeout: SOON,
      });
      const { hold: next } = waitFor(kind.rival.make([waiter], name));
      await hold.unlock();
      await (await next).unlock();
    }
  };
  await serve();
  const other = (await cluster.masters()).find((node) => node !== master);
  for (const [, name] of locks) await moveSlot(cluster, name, other);
  await serve();
  for (const [, name] of locks) await moveSlot(cluster, name, master);
  await serve();
  await politeFailover(cluster, "here");
  await serve();
});
