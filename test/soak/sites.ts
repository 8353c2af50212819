/** The servers of a soak: they lose nothing that they have granted, and nobody replaces them but the plan. */
import { ClusterSite, RedlockSite, SentinelSite, SingleSite, type Site } from "../exclusion/sites.js";
import { startCluster, startRedis, startSentinel } from "../support/index.js";
import type { Topology } from "./plan.js";

/**
 * Redis writes to its append-only file before it answers, and what is written outlives the process, if not the machine: to
 * survive SIGKILL nothing has to be synced. ("everysec" would not do: it puts writes off while a sync is under way.) The file is
 * rewritten before it takes long to load.
 */
const FAITHFUL = ["--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-min-size", "8mb"];
/** Milliseconds: longer than a server is away in the plan, on a machine that is busy. */
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
