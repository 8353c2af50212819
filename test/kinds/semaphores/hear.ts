/** Listens to the messages of a server, past all clients. */
import type { Stage } from "../../faults/harness.js";

/** The messages of a channel. */
export interface Heard extends AsyncDisposable {
  /** All messages so far. */
  messages(): Promise<string[]>;
}

export async function hear(stage: Stage, channel: string): Promise<Heard> {
  const subscriber = stage.server.connect();
  const heard: string[] = [];
  subscriber.on("message", (_: string, message: string) => heard.push(message));
  await subscriber.subscribe(channel);
  return {
    messages: async () => {
      await subscriber.ping(); // messages that were sent before its answer have arrived by then
      return [...heard];
    },
    [Symbol.asyncDispose]: async () => subscriber.disconnect(),
  };
}
