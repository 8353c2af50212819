/** The servers of a soak. They lose no grant, and a replica becomes master only by a fault of the plan. */
import { ClusterSite, RedlockSite, SentinelSite, SingleSite, type Site } from "../exclusion/sites.js";
import { startCluster, startRedis, startSentinel } from "../support/index.js";
import type { Topology } from "./plan.js";

/**
 * Redis writes to its append-only file before it answers. The written data outlives the process, if not the machine, so
 * that SIGKILL needs no sync. ("everysec" is not enough: it delays writes while a sync runs.) Redis rewrites the file
 * before loading it would take long.
 */
const FAITHFUL = ["--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-min-size", "8mb"];
/** Milliseconds: longer than any fault of the plan stops a server, even on a busy machine. */
const PATIENT = 6_000;
const MASTERS = 5;

export const SITES: Readonly<Record<Topology, () => Promise<Site>>> = {
  single: async () => new SingleSite(await startRedis({ args: FAITHFUL })),
  sentinel: async () => new SentinelSite(await startSentinel({ args: FAITHFUL, downAfter: PATIENT })),
  cluster: async () => {
    const options = { masters: 3, replicas: 1, nodeTimeout: PATIENT, args: FAITHFUL };
    return new ClusterSite(await startCluster(options));
  },
  redlock: async () => {
    const servers = Array.from({ length: MASTERS }, () => startRedis({ args: FAITHFUL }));
    return new RedlockSite(await Promise.all(servers));
  },
};
