/**
 * ioredis (5.4 to 6.0) can end a connection by Sentinel for good in a failover, though nobody asked for that:
 *
 *   connection          asks a sentinel for the master
 *   failover detector   hears `+switch-master`, and closes the connector
 *   connection          has its answer, finds its connector closed, and ends: status `end`
 *
 * Such a connection connects again here. One that its user ends does not, nor one whose options let it give up.
 */
import type { Connection } from "./connection.js";
import { onEvents } from "./connection-events.js";

/** What is known of its inside; where a version has it otherwise, nothing is done. */
interface Inside {
  /** Its user has asked for the end. */
  readonly manuallyClosing?: boolean;
  readonly connector?: { readonly connecting?: boolean };
}

/** Returns the way to stop that. */
export function stayConnected(connection: Connection): () => void {
  if (!connection.options.sentinels) return () => {};
  // An end that comes by a closed socket is meant: by its user, or by a `retryStrategy`.
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
        // Its events tell; at another such end it is tried again.
      });
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
