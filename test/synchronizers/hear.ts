/** What is announced on the server, past all clients. */
import type { Stage } from "../faults/harness.js";

/** The messages of a channel. */
export interface Heard extends AsyncDisposable {
  /** All so far. */
  messages(): Promise<string[]>;
}

export async function hear(stage: Stage, channel: string): Promise<Heard> {
  const subscriber = stage.server.connect();
  const heard: string[] = [];
  subscriber.on("message", (_: string, message: string) => heard.push(message));
  await subscriber.subscribe(channel);
  return {
    messages: async () => {
      await subscriber.ping(); // what was announced before the answer is here by then
      return [...heard];
    },
    [Symbol.asyncDispose]: async () => subscriber.disconnect(),
  };
}
