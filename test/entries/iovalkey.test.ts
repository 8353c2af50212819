/** iovalkey works without an adapter: the core of the contract on its clients. */
import { Cluster, Redis } from "iovalkey";
import { afterAll } from "vitest";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, startCluster, startRedis } from "../support/index.js";
import { coreOfTheContract } from "../topology/core.js";

failOnUnhandledRejections();
const [server, cluster] = await Promise.all([forFile(startRedis()), forFile(startCluster({ masters: 3 }))]);

const clients: (Redis | Cluster)[] = [];
afterAll(() => {
  for (const client of clients) client.disconnect();
});

function kept<T extends Redis | Cluster>(client: T): T {
  client.on("error", () => {});
  clients.push(client);
  return client;
}

coreOfTheContract("on iovalkey", { connect: () => kept(new Redis(server.port, server.host)) });
coreOfTheContract("on a cluster with iovalkey", {
  connect: () => kept(new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })))),
});
