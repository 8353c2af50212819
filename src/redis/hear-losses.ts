/**
 * Tells when a connection is lost, and with it perhaps the answers to what was on its way.
 *
 * A cluster stays connected when it loses a node, and tells of the node instead. But with `clusterNodeRetryStrategy`
 * (ioredis from 5.11) the connection to a node comes back by itself, and then only that connection tells it.
 */
import type { Connection } from "./connection.js";
import { onEvents, onNodes } from "./connection-events.js";

/**
 * Calls `lost` at each loss of the connection, or of that to a node of a cluster; `nodeIsBack` when a node's is ready
 * again. Returns a function that stops it.
 */
export function hearLosses(
  connection: Connection,
  lost: () => void,
  nodeIsBack: () => void = () => {},
): () => void {
  const stops = new Map<unknown, readonly (() => void)[]>();
  const hear = (node: unknown) => {
    if (hasEvents(node)) stops.set(node, hearNode(node, lost, nodeIsBack));
  };
  const ignore = (node: unknown) => {
    for (const stop of stops.get(node) ?? []) stop();
    stops.delete(node);
  };
  const stopOthers = [
    onEvents(connection, ["close", "node error", "-node"], lost),
    onEvents(connection, ["-node"], ignore),
    onNodes(connection, hear),
  ];
  return () => {
    for (const stop of stopOthers) stop();
    for (const node of stops.keys()) ignore(node);
  };
}

function hearNode(node: Connection, lost: () => void, isBack: () => void): readonly (() => void)[] {
  let isBroken = false;
  const closed = () => {
    isBroken = true;
    lost();
  };
  const ready = () => {
    if (isBroken) isBack();
    isBroken = false;
  };
  return [onEvents(node, ["close"], closed), onEvents(node, ["ready"], ready)];
}

/** The clusters of other packages have no connections of their own to show. */
function hasEvents(node: unknown): node is Connection {
  return typeof (node as Partial<Connection>).on === "function";
}
