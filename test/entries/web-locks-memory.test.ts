/** What a request of the Web Locks API leaves in memory when it is over. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { createLockManager } from "../../src/entries/web-locks.js";
import type { LockClient } from "../../src/index.js";
import { until } from "../support/index.js";
import { hold, webLocksScene } from "./web-locks-scene.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const scene = webLocksScene();

type Ask = (client: LockClient, name: string, callback: () => void) => Promise<unknown>;

const ENDS: readonly [how: string, ask: Ask][] = [
  [
    "is refused",
    (client, name, callback) => createLockManager(client).request(name, { ifAvailable: true }, callback),
  ],
  [
    "is aborted on its way to Redis",
    async (client, name, callback) => {
      const controller = new AbortController();
      const request = createLockManager(client).request(name, { signal: controller.signal }, callback);
      controller.abort("over");
      await expect(request).rejects.toBe("over");
    },
  ],
  [
    "is aborted while it waits",
    async (client, name, callback) => {
      const controller = new AbortController();
      const request = createLockManager(client).request(name, { signal: controller.signal }, callback);
      await until("it waits", () => client.stats().waiting > 0);
      controller.abort("over");
      await expect(request).rejects.toBe("over");
    },
  ],
];

test.each(ENDS)(
  "a request that %s keeps no callback, though nothing is ever granted here [B176]",
  async (_how, ask) => {
    const name = scene.name();
    const elsewhere = await hold(scene.manager(), name);
    const client = scene.client();
    const callbacks: WeakRef<() => void>[] = [];
    const once = async () => {
      const callback = () => {};
      callbacks.push(new WeakRef(callback));
      await ask(client, name, callback);
    };
    for (let n = 0; n < 20; n++) await once();
    await until("all callbacks are garbage", () => {
      collect();
      return callbacks.every((callback) => callback.deref() === undefined);
    });
    await elsewhere.release();
  },
);
