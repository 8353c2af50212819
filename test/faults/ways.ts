/** On which servers, and by which ioredis, the tests of the faults run each kind of lock: rows for `describe.each`. */
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

/** These kinds, on both topologies. */
export const onBoth = (kinds: readonly Kind[]): Row[] =>
  kinds.flatMap((kind) =>
    (["standalone", "cluster"] as const).map((topology) => [kind.name, topology, kind] as const),
  );

/** All kinds on one server, and one on a cluster, too: the way to the server is the same for all. */
export const byTopology: Row[] = onBoth(KINDS).filter(
  ([, topology, kind]) => topology === "standalone" || kind === PLAIN,
);
