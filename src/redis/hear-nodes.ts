/**
 * With the option `clusterNodeRetryStrategy` (ioredis from 5.11) a cluster's connection to a node comes back by itself, and
 * the cluster tells nothing of it: only the node does.
 */
import { type Connection, isCluster } from "./connection.js";
import { onEvents } from "./connection-events.js";

/** Calls `lost` whenever a cluster's connection to a node is lost, and `back` when it is ready again. Returns a function that stops it. */
export function hearNodes(connection: Connection, lost: () => void, back: () => void): () => void {
  if (!isCluster(connection)) return () => {};
  const broken = new WeakSet<object>();
  const stops = new Map<unknown, readonly (() => void)[]>();
  const hear = (node: unknown) => {
    if (!hasEvents(node)) return;
    const closed = () => {
      broken.add(node);
      lost();
    };
    const ready = () => {
      if (broken.delete(node)) back();
    };
    stops.set(node, [onEvents(node, ["close"], closed), onEvents(node, ["ready"], ready)]);
  };
  const ignore = (node: unknown) => {
    for (const stop of stops.get(node) ?? []) stop();
    stops.delete(node);
  };
  for (const node of connection.nodes("all")) hear(node);
  const stopNodes = [onEvents(connection, ["+node"], hear), onEvents(connection, ["-node"], ignore)];
  return () => {
    for (const stop of stopNodes) stop();
    for (const node of stops.keys()) ignore(node);
  };
}

/** The clusters of other packages have no connections of their own to show. */
function hasEvents(node: unknown): node is Connection {
  return typeof (node as Partial<Connection>).on === "function";
}
