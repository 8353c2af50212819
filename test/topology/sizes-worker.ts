/** A process of a fleet that holds many locks at once, and waits for locks of other processes. */
import { Cluster } from "ioredis";
import { type Hold, LockClient } from "../../src/index.js";
import { KINDS, type Kind } from "../contract/kinds.js";

export interface StartRequest {
  readonly ports: readonly number[];
  readonly watchdogTimeout: number;
}

/** A lock, and its kind: the index in KINDS. */
export interface Named {
  readonly name: string;
  readonly kind: number;
}

export interface Figures {
  readonly held: number;
  /** The number of renewals of the lock that was renewed least. */
  readonly leastRenewed: number;
  readonly waiting: number;
  readonly granted: number;
  readonly troubles: string[];
}

let redis: Cluster | undefined;
let client: LockClient | undefined;
const holds = new Map<string, Hold>();
const renewed = new Map<string, number>();
const troubles: string[] = [];
let waiting = 0;
let granted = 0;
process.on("unhandledRejection", (reason) => troubles.push(`unhandled: ${String(reason)}`));

const kindOf = ({ kind }: Named): Kind => KINDS[kind] as Kind;

function theClient(): LockClient {
  if (client === undefined) throw new Error("not started");
  return client;
}

async function waitFor(named: Named): Promise<void> {
  waiting++;
  const hold = await kindOf(named).rival.make(theClient(), named.name).lock();
  granted++;
  await hold.unlock();
}

/** The handlers for `worker.request`. */
export const handlers: Record<string, (payload: never) => Promise<unknown>> = {
  start: async ({ ports, watchdogTimeout }: StartRequest) => {
    redis = new Cluster(ports.map((port) => ({ host: "127.0.0.1", port })));
    redis.on("error", () => {});
    client = new LockClient(redis, { watchdogTimeout, commandTimeout: 10_000 });
    client.on("renewed", ({ lockName }) => renewed.set(lockName, (renewed.get(lockName) ?? 0) + 1));
    for (const event of ["lost", "error", "suspended"] as const) {
      client.on(event, (payload) => troubles.push(`${event}: ${JSON.stringify(payload)}`));
    }
    await client.ready();
  },
  take: async (all: readonly Named[]) => {
    await Promise.all(
      all.map(async (named) => {
        holds.set(named.name, await kindOf(named).make(theClient(), named.name).lock());
        renewed.set(named.name, 0);
      }),
    );
  },
  /** Starts to wait for these locks; each is given back as soon as it is granted. */
  want: async (all: readonly Named[]) => {
    for (const named of all) waitFor(named).catch((error) => troubles.push(`waiting: ${String(error)}`));
  },
  figures: async (): Promise<Figures> => {
    const held = [...holds.values()].filter(({ isHeld }) => isHeld).length;
    return { held, leastRenewed: Math.min(...renewed.values()), waiting, granted, troubles };
  },
  giveBack: async () => {
    await Promise.all([...holds.values()].map((hold) => hold.unlock()));
    holds.clear();
  },
  close: async () => {
    await client?.close({ timeout: 0 });
    redis?.disconnect();
  },
};
