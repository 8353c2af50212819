/** Ends the connection of one master, as redlock's `quit()` does. */
import { clearTimeout, setTimeout } from "../../base/platform.js";
import type { Master } from "./votes.js";

/** Milliseconds that a server has to answer QUIT: a silent one must not keep the connection and the client open. */
const WITHIN = 2_000;

export async function quitMaster({ redis, client }: Master): Promise<void> {
  // A connection that is away would answer QUIT when it is back; a command behind QUIT may cut off its answer.
  if (redis.status === "ready") await settledWithin(WITHIN, redis.quit());
  redis.disconnect();
  await client.close({ timeout: 0 });
}

function settledWithin(ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    work.then(end, end);
  });
}
