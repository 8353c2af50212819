/** The servers, and versions of ioredis, on which the fault tests run each kind of lock: rows for `describe.each`. */
import { KINDS, type Kind, PLAIN } from "../contract/kinds.js";
import type { Topology, Version } from "./harness.js";

/** All topologies and versions. */
export const EVERYWHERE: readonly [Topology, Version][] = [
  ["standalone", 6],
  ["standalone", 5],
  ["cluster", 6],
  ["cluster", 5],
];

export type Row = readonly [name: string, topology: Topology, kind: Kind];

/** Rows for these kinds, on both topologies. */
export const onBoth = (kinds: readonly Kind[]): Row[] =>
  kinds.flatMap((kind) =>
    (["standalone", "cluster"] as const).map((topology) => [kind.name, topology, kind] as const),
  );

/** All kinds on one server, but only one on a cluster, because the connection is the same for all kinds. */
export const byTopology: Row[] = onBoth(KINDS).filter(
  ([, topology, kind]) => topology === "standalone" || kind === PLAIN,
);
