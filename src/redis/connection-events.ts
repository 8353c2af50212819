/**
 * The events of the user's connection. However many clients and calls listen, the connection has one listener for each
 * event: Node warns of an eleventh, and the limit of the user's emitter is not this library's to change.
 */
import { type Connection, isCluster } from "./connection.js";

type Callback = (...args: readonly unknown[]) => void;

interface Relay {
  readonly callbacks: Set<Callback>;
  readonly listener: Callback;
}

/** The relays, by connection and event. */
const RELAYS = new WeakMap<Connection, Map<string | symbol, Relay>>();

/**
 * Calls back at each of these events; callbacks run in the order in which they were added. Returns a function that
 * stops it.
 */
export function onEvents(
  connection: Connection,
  events: readonly (string | symbol)[],
  callback: Callback,
): () => void {
  const stops = events.map((event) => onEvent(connection, event, callback));
  return () => {
    for (const stop of stops) stop();
  };
}

/** Calls back with each connection of a cluster to a node, now and when it makes a new one. Returns a function that stops it. */
export function onNodes(connection: Connection, callback: (node: unknown) => void): () => void {
  if (!isCluster(connection)) return () => {};
  for (const node of connection.nodes("all")) callback(node);
  return onEvents(connection, ["+node"], callback);
}

function onEvent(connection: Connection, event: string | symbol, callback: Callback): () => void {
  const relays = RELAYS.get(connection) ?? new Map<string | symbol, Relay>();
  RELAYS.set(connection, relays);
  const relay = relays.get(event) ?? startRelay(connection, event);
  relays.set(event, relay);
  // The same function may be added twice, and each of the two is stopped by itself.
  const own: Callback = (...args) => callback(...args);
  relay.callbacks.add(own);
  return () => {
    relay.callbacks.delete(own);
    if (relay.callbacks.size > 0 || relays.get(event) !== relay) return;
    relays.delete(event);
    connection.off(event, relay.listener);
  };
}

function startRelay(connection: Connection, event: string | symbol): Relay {
  const callbacks = new Set<Callback>();
  const listener: Callback = (...args) => {
    // A callback that is removed meanwhile is not called any more, and one that is added meanwhile is not called yet.
    for (const callback of [...callbacks]) if (callbacks.has(callback)) callback(...args);
  };
  connection.on(event, listener);
  return { callbacks, listener };
}
