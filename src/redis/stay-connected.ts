/**
 * ioredis (5.4 to 6.0) can end a connection by Sentinel for good in a failover, though nobody asked for that:
 *
 *   connection          asks a sentinel for the master
 *   failover detector   hears `+switch-master`, and closes the connector
 *   connection          has its answer, finds its connector closed, and ends: status `end`
 *
 * This module connects such a connection again, unless its user has ended it or its options let it give up.
 */
import type { Connection } from "./connection.js";
import { onEvents } from "./connection-events.js";

/** Members inside of ioredis. In a version that has them otherwise, this module does nothing. */
interface Inside {
  /** The user has asked for the end. */
  readonly manuallyClosing?: boolean;
  readonly connector?: { readonly connecting?: boolean };
}

/** Connects again after such an end. Returns a function that stops that. */
export function stayConnected(connection: Connection): () => void {
  if (!connection.options.sentinels) return () => {};
  // An end behind the close of a socket is intended: by the user, or by a `retryStrategy`.
  let wasClosed = false;
  const stops = [
    onEvents(connection, ["connecting"], () => {
      wasClosed = false;
    }),
    onEvents(connection, ["close"], () => {
      wasClosed = true;
    }),
    onEvents(connection, ["end"], () => {
      const { manuallyClosing, connector } = connection as Inside;
      if (wasClosed || manuallyClosing !== false || connector?.connecting !== false) return;
      connection.connect().catch(() => {
        // The connection's events report the failure; after another such end it connects again.
      });
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
