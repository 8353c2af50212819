/** Semaphores and latches, each checked behind a proxy of its own, on a server of the test file. */
import { forFile, type RedisServer, startProxy, startRedis } from "../../support/index.js";
import { type Checked, check } from "../check.js";
import type { Checkable } from "../suites.js";
import type { Synchronizer } from "./course.js";
import { latches } from "./latch.js";
import { permits } from "./permits.js";
import { semaphores } from "./semaphore.js";

/** Things that must happen among the histories of a suite; without them the histories prove little. */
const USUAL = ["granted", "waited", "nothing", "aborted", "loseReply", "loseRequest"];

function checkable<Step>(
  server: RedisServer,
  { name, histories, begin }: Synchronizer<Step>,
  special: readonly string[],
  ...seldom: string[]
): Checkable {
  return {
    name,
    usual: [...USUAL, ...special],
    seldom: ["CLIENT_CLOSED", ...seldom],
    async check({ db, ...options }) {
      await using proxy = await startProxy(server, { record: false });
      // A connection that was cut comes back at once.
      const connect = () => proxy.connect({ db, retryStrategy: () => 1 });
      const checked: Checked<Step> = { histories, begin: (world, name) => begin(world, name, proxy) };
      return await check(checked, { ...options, connect });
    },
  };
}

export async function checkableSynchronizers(): Promise<Checkable[]> {
  const server = await forFile(startRedis());
  return [
    checkable(server, semaphores, ["left"]),
    checkable(server, permits, [], "NOT_OWNER", "lost"),
    checkable(server, latches, ["opened"]),
  ];
}
