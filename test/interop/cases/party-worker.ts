/** A Node process that shuts or awaits what it is told, until it is killed. */
import { Redis } from "ioredis";
import { LockClient, type LockClientOptions } from "../../../src/index.js";
import { NodeParty } from "../party.js";
import { CONTESTS, type Contest } from "./contests.js";

let client: LockClient | undefined;

interface What {
  readonly kind: string;
  readonly name: string;
}

function begin(
  { kind, name }: What,
  act: (contest: Contest, party: NodeParty, name: string) => Promise<unknown>,
) {
  const contest = CONTESTS.find((each) => each.kind === kind);
  if (!contest || !client) throw new Error(`no ${kind}, or not started`);
  return act(contest, new NodeParty(client, async () => new Map()), name);
}

/** The handlers for `worker.request`. */
export const handlers: Record<string, (payload: never) => Promise<unknown>> = {
  start: async ({ port, options }: { port: number; options: LockClientOptions }) => {
    const redis = new Redis({ port, host: "127.0.0.1" });
    redis.on("error", () => {});
    client = new LockClient(redis, options);
    await client.ready();
  },
  shut: async (what: What) => {
    await begin(what, (contest, party, name) => contest.shut(party, name));
  },
  /** Resolves when the call waits. */
  waits: async (what: What) => {
    const waiting = new Promise((resolve) => client?.once("waiting", resolve));
    const call = begin(what, (contest, party, name) => contest.waits(party, name));
    await Promise.race([waiting, call]);
  },
};
