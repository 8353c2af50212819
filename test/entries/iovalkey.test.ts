/** iovalkey goes in as it is: the core of the contract on its clients. */
import { Cluster, Redis } from "iovalkey";
import { afterAll, beforeAll } from "vitest";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { type RedisCluster, type RedisServer, startCluster, startRedis } from "../support/index.js";
import { coreOfTheContract } from "../topology/core.js";

let server: RedisServer;
let cluster: RedisCluster;
const clients: (Redis | Cluster)[] = [];

failOnUnhandledRejections();
beforeAll(async () => {
  [server, cluster] = await Promise.all([startRedis(), startCluster({ masters: 3 })]);
});
afterAll(async () => {
  for (const client of clients) client.disconnect();
  await Promise.all([server?.stop(), cluster?.stop()]);
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
