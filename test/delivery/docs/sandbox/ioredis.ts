/** What a block gets for `ioredis`: the same, except that every connection goes to the test's servers. */
import { Cluster as RealCluster, Redis as RealRedis } from "ioredis";
import { type ClientOptions, servers } from "./servers.js";

export class Redis extends RealRedis {
  constructor(options: ClientOptions = {}) {
    super({ ...options, ...target(options) });
  }
}

export class Cluster extends RealCluster {
  constructor(_nodes: unknown) {
    super(servers.cluster);
  }
}

function target(options: ClientOptions): ClientOptions {
  if (typeof options !== "object") throw new Error('the sandbox knows "new Redis(options)" only');
  const [first] = servers.masters;
  return options.sentinels ? servers.sentinel : { host: "127.0.0.1", port: first as number };
}
