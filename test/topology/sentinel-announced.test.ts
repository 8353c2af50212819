/**
 * A sentinel announces the new master while a connection asks another sentinel for it. ioredis then ends that connection
 * for good, because its failover detector closes connections that are still connecting.
 */
import type { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { describe, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { atLast, failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, startSentinel, UNHURRIED, until } from "../support/index.js";
import { CALM } from "./sentinel-haste.js";

failOnUnhandledRejections();
const all = await forFile(startSentinel({ downAfter: CALM }));

/** The part of ioredis that acts when a sentinel announces a new master. */
interface Detecting {
  readonly connector: { readonly failoverDetector: { disconnect(): void } | null };
}

/** A connection and those that the library makes from it; one is told of a failover while it asks for the master. */
class Asking {
  readonly redis: Redis;
  announced = false;
  /** The connection, followed by its subscribers. */
  readonly all: Redis[] = [];
  #told: Redis | undefined;

  constructor(make: (options: object) => Redis) {
    this.redis = make({ failoverDetector: true, natMap: () => this.#answered() });
    this.#watch(this.redis);
  }

  /** Cuts all connections, so that they ask for the master; only `told` is then told of a failover. */
  async cut(told: Redis | undefined): Promise<void> {
    this.#told = told;
    const master = await all.master();
    for (const type of ["normal", "pubsub"]) await master.call("CLIENT", "KILL", "TYPE", type);
  }

  #watch(redis: Redis): void {
    this.all.push(redis);
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (options) => {
      const made = duplicate(options);
      this.#watch(made);
      return made;
    };
  }

  /** ioredis calls this with each answer, before it checks whether it was closed meanwhile. */
  #answered(): null {
    if (this.announced || this.#told?.status !== "connecting") return null;
    const { failoverDetector } = (this.#told as unknown as Detecting).connector;
    failoverDetector?.disconnect();
    this.announced = failoverDetector !== null;
    return null;
  }
}

const VERSIONS: [string, (options: object) => Redis][] = [
  ["ioredis 6", (options) => all.connect(options)],
  [
    "ioredis 5",
    (options) => {
      const redis = new Redis5({ ...all.clientOptions, ...options } as object) as unknown as Redis;
      redis.on("error", () => {});
      return redis;
    },
  ],
];

const TOLD: [string, number][] = [
  ["connection", 1],
  ["subscriber", 2],
];

describe.each(VERSIONS)("%s", (_, make) => {
  test.each(TOLD)(
    "a %s that is told while it asks comes back, and a waiter is woken [B41]",
    async (_what, told) => {
      const other = new LockClient(all.connect(), UNHURRIED);
      const asking = new Asking(make);
      const client = new LockClient(asking.redis, { ...UNHURRIED, pollCap: 60_000 });
      try {
        const hold = await other.getLock("order").lock();
        const { done } = await untilWaiting(client, () => client.getLock("order").lock());
        await until("both look out for failovers", () =>
          asking.all
            .slice(1)
            .every((redis) => (redis as unknown as Detecting).connector.failoverDetector !== null),
        );
        await asking.cut(asking.all[told]);
        await until("it was told while it asked", () => asking.announced);
        await until("both are back", () => asking.all.slice(1).every((redis) => redis.status === "ready"));
        await atLast(() => hold.unlock());
        await (await done).unlock();
      } finally {
        await Promise.all([client, other].map((each) => each.close({ timeout: 0 })));
        asking.redis.disconnect();
      }
    },
  );
});
