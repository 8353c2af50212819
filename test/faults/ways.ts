/** The servers, and versions of ioredis, on which the fault tests run each kind of lock: rows for `describe.each`. */
import { KINDS, type Kind, PLAIN } from "../contract/kinds.js";
import type { Topology, Version } from "./harness.js";

const EVERYWHERE: readonly [Topology, Version][] = [
  ["standalone", 6],
  ["standalone", 5],
  ["cluster", 6],
  ["cluster", 5],
];

export type Row = readonly [name: string, topology: Topology, kind: Kind];

/** These kinds on one server, but only one on a cluster, because the connection is the same for all kinds. */
export const byTopology = (kinds: readonly Kind[] = KINDS): Row[] => [
  ...kinds.map((kind) => [kind.name, "standalone", kind] as const),
  [PLAIN.name, "cluster", PLAIN],
];

/** All topologies and versions for one kind. Two rows are enough for the scripts of the others. */
export const everyWay = (kinds: readonly Kind[]): [name: string, Topology, Version, Kind][] =>
  kinds.flatMap((kind) =>
    EVERYWHERE.filter(
      ([topology, version]) => kind === PLAIN || (topology === "cluster") === (version === 5),
    ).map(([topology, version]): [string, Topology, Version, Kind] => [kind.name, topology, version, kind]),
  );
