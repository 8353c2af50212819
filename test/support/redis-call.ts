/**
 * These commands use a connection of their own, without any client library. A test's questions to a server must not
 * depend on the client under test, its retries or its offline queue.
 */
import { connect } from "node:net";
import { decode, encodeCommand, FrameReader, type RespValue } from "./resp.js";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly password?: string | undefined;
}

/**
 * Connects, sends one command, disconnects and resolves with the reply. Rejects with the server's error, and after
 * `timeout` ms without an answer.
 */
export async function redisCall(
  endpoint: Endpoint,
  command: readonly (string | number)[],
  timeout = 5_000,
): Promise<RespValue> {
  const { host, port, password } = endpoint;
  const commands = password === undefined ? [command] : [["AUTH", password], command];
  const socket = connect({ host, port, noDelay: true });
  const replies: RespValue[] = [];
  const reader = new FrameReader();
  try {
    return await new Promise<RespValue>((resolve, reject) => {
      const name = `${command[0]} on ${host}:${port}`;
      socket.setTimeout(timeout, () => reject(new Error(`${name}: no answer within ${timeout} ms`)));
      socket.on("error", reject);
      socket.on("close", () => reject(new Error(`${name}: the connection was closed`)));
      socket.on("data", (chunk) => {
        for (const frame of reader.push(chunk)) replies.push(decode(frame));
        const failed = replies.find((reply) => reply instanceof Error);
        if (failed !== undefined) reject(failed);
        else if (replies.length === commands.length) resolve(replies[replies.length - 1] ?? null);
      });
      socket.write(Buffer.concat(commands.map(encodeCommand)));
    });
  } finally {
    socket.destroy();
  }
}

/** INFO as a map of its lines. */
export async function redisInfo(endpoint: Endpoint, section: string): Promise<Map<string, string>> {
  const text = String(await redisCall(endpoint, ["INFO", section]));
  const lines = text.split(/\r?\n/).filter((line) => line.includes(":"));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
}
