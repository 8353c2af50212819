/**
 * ioredis (5.4 to 6.0) sends ASKING ahead of a command to the master that a slot is moving to, and ignores its promise:
 *
 *   node         answers ASK: the slot is moving
 *   ioredis      sends ASKING and the command to the other master
 *   connection   ends before it answers: both promises reject; nobody handles that of ASKING, which ends the process
 *
 * This module handles it. ioredis itself sends the command again.
 */
import type { Connection } from "./connection.js";
import { onNodes } from "./connection-events.js";

/** A connection to one node. In another version of ioredis it may have no `asking`. */
interface Node {
  asking?(...args: unknown[]): Promise<unknown>;
}

const heard = new WeakSet<Node>();

/** Handles ASKING on all nodes. Returns a function that stops that for nodes that come later. */
export function hearAsking(connection: Connection): () => void {
  return onNodes(connection, (node) => hear(node as Node));
}

function hear(node: Node): void {
  const { asking } = node;
  if (typeof asking !== "function" || heard.has(node)) return;
  heard.add(node);
  node.asking = (...args) => {
    const answer = asking.apply(node, args);
    answer.catch(() => {
      // The command behind it reports the failure.
    });
    return answer;
  };
}
