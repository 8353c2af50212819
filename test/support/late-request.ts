/**
 * The delivery of a withheld request: its bytes reach the server long after the client has gone.
 */
import type { Socket } from "node:net";
import { ReplyQueue } from "./proxy-replies.js";
import { FrameReader } from "./resp.js";

/**
 * Sends `frame` on `server`, whose earlier commands have all been answered. Resolves with the raw reply as text, and then
 * closes the connection. Rejects if the server closes it first.
 */
export async function sendLate(server: Socket, frame: Buffer, command: readonly string[]): Promise<string> {
  const reader = new FrameReader();
  const replies = new ReplyQueue();
  replies.add({ command, replies: 1 });
  try {
    return await new Promise<string>((resolve, reject) => {
      const gone = (): void =>
        reject(new Error(`the server closed the connection before ${command[0]} was answered`));
      if (server.destroyed || server.readableEnded) gone();
      server.once("close", gone);
      server.removeAllListeners("data");
      server.on("data", (chunk: Buffer) => {
        for (const reply of reader.push(chunk))
          if (replies.match(reply) !== undefined) resolve(reply.toString());
      });
      server.resume();
      server.write(frame);
    });
  } finally {
    server.destroy();
  }
}
