/** Semaphores and latches, each checked behind a proxy of its own. */
import { type RedisServer, startProxy } from "../../support/index.js";
import { type Checked, type CheckOptions, check, type Report } from "../check.js";
import type { Synchronizer } from "./course.js";
import { latches } from "./latch.js";
import { permits } from "./permits.js";
import { semaphores } from "./semaphore.js";

export type Options = Omit<CheckOptions, "connect"> & { readonly db: number };

export interface Kind {
  readonly name: string;
  check(server: RedisServer, options: Options): Promise<Report>;
}

function kindOf<Step>({ name, histories, begin }: Synchronizer<Step>): Kind {
  return {
    name,
    async check(server, { db, ...options }) {
      const proxy = await startProxy(server, { record: false });
      // A connection that was cut is back at once.
      const connect = () => proxy.connect({ db, retryStrategy: () => 1 });
      try {
        const checked: Checked<Step> = { histories, begin: (world, name) => begin(world, name, proxy) };
        return await check(checked, { ...options, connect });
      } finally {
        await proxy.stop();
      }
    },
  };
}

export const kinds: readonly Kind[] = [kindOf(semaphores), kindOf(permits), kindOf(latches)];
