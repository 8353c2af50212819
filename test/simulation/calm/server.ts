import type { Subscriber } from "../../../src/entries/testing/memory-server.js";
import { type Reply, ReplyError } from "../../../src/entries/testing/reply.js";
import { TracedServer } from "../journal.js";

/** A server that loses the request or the reply of one command, and knows its listeners. */
export class CalmServer extends TracedServer {
  fault: { readonly what: "request" | "reply"; readonly drop: () => void } | undefined;
  readonly listeners: Map<string, number> = new Map();

  override execute(command: readonly string[]): Reply {
    const { fault } = this;
    if (!fault || !/^eval/i.test(command[0] ?? "")) return super.execute(command);
    // A script that the server does not know yet throws, and comes once more.
    const reply = fault.what === "reply" ? super.execute(command) : "";
    this.fault = undefined;
    fault.drop();
    if (fault.what === "request") throw new ReplyError("ERR nobody hears this");
    return reply;
  }

  override subscribe(kind: "publish" | "spublish", channel: string, subscriber: Subscriber): void {
    this.listeners.set(channel, (this.listeners.get(channel) ?? 0) + 1);
    super.subscribe(kind, channel, subscriber);
  }

  override unsubscribe(kind: "publish" | "spublish", channel: string, subscriber: Subscriber): void {
    this.listeners.set(channel, (this.listeners.get(channel) ?? 0) - 1);
    super.unsubscribe(kind, channel, subscriber);
  }
}
