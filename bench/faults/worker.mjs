/** A process of a peer in Node: a client with the defaults of ioredis, and the adapter that takes locks with it. */
import { createRequire } from "node:module";
import { emit, serve } from "../../test/support/worker-child.mjs";
import { Redis } from "../lib/ioredis.mjs";

const load = createRequire(new URL("../package.json", import.meta.url));
/** The holds of each lock; the innermost is last. */
const holds = new Map();
let peer;

process.on("unhandledRejection", (error) => emit("unhandled", String(error)));

const innermost = (name) => holds.get(name).at(-1);

serve({
  connect: async ({ adapter, redis: options, lease, options: own }) => {
    const redis = new Redis(options);
    redis.on("error", () => {});
    const { create } = await import(`./adapters/${adapter}.mjs`);
    peer = create({ redis, load, lease, options: own, told: (name) => emit("told", name) });
    await redis.ping();
  },
  take: async (name) => {
    holds.set(name, [await peer.take(name)]);
  },
  takeAgain: async (name) => {
    holds.get(name).push(await peer.takeAgain(name, innermost(name)));
  },
  giveBack: async (name) => {
    await peer.giveBack(holds.get(name).pop());
  },
  isFree: async (name) => {
    const taken = await peer.tryTake(name);
    if (!taken) return false;
    await peer.giveBack(taken);
    return true;
  },
  isHeld: async (name) => peer.isHeld?.(innermost(name)),
  /**
   * Blocks this process until it has been stopped for `ms` and runs again; then returns what the very next line reads.
   */
  isHeldAfterStop: async ({ name, ms }) => {
    let [last, now] = [performance.now(), performance.now()];
    emit("ready to stop");
    for (; now - last < ms; now = performance.now()) last = now;
    return peer.isHeld?.(innermost(name));
  },
});
