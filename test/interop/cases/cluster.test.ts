/** Java and Node on a cluster of three masters, by sharded and by classic pub/sub, and with clients that differ in that. */
import { describe, expect, test } from "vitest";
import type { LockClientOptions } from "../../../src/index.js";
import { DIRECTIONS, type Side } from "../party.js";
import { soon, withRedisson } from "../scene.js";
import { CONTESTS } from "./contests.js";
import { handOver } from "./hand-over.js";

type PubSub = "sharded" | "classic";
const PREFIXES = { sharded: ["SHARD"], classic: [""] } as const;
/** Names of several slots, and one with a tag. */
const SHAPES = [
  ...Array.from({ length: 3 }, () => (unique: string) => unique),
  (unique: string) => `{${unique}}:desk`,
];

withRedisson(
  "cluster",
  (scene) => {
    const optionsOf = (pubSub: PubSub, more: LockClientOptions = {}) => ({
      shardedPubSub: pubSub === "sharded" ? ("auto" as const) : false,
      ...more,
    });
    const javaOf = (pubSub: PubSub) => scene.newJava({ sharded: pubSub === "sharded" ? "AUTO" : "OFF" });
    const heard = async (name: string, pubSub: PubSub) =>
      [...(await scene.listeners(PREFIXES[pubSub]))].reduce(
        (sum, [channel, count]) => sum + (channel.includes(name) ? count : 0),
        0,
      );

    describe.each<[PubSub, PubSub]>([
      ["sharded", "classic"],
      ["classic", "sharded"],
    ])("with %s pub/sub", (pubSub, unused) => {
      test.each(CONTESTS.map((contest) => [contest.kind, contest] as const))(
        "%s is handed over by message, both ways",
        async (_, contest) => {
          const options = { java: await javaOf(pubSub), node: optionsOf(pubSub) };
          for (const shape of SHAPES) {
            const name = scene.name(shape);
            // On a cluster, Redisson's latches with such names do not work.
            if (contest.kind === "latch" && name.includes("{")) continue;
            for (const direction of DIRECTIONS) {
              const [one, other] = [
                await scene.party(direction[0], options),
                await scene.party(direction[1], options),
              ];
              await handOver(scene, contest, [one, other], name, async () => {
                expect(await heard(name, unused)).toBe(0);
              });
            }
          }
          await options.java.close();
        },
      );
    });

    test("where the server has sharded pub/sub both decide for it, and against it where it refuses to say", async () => {
      const allow = (right: string) =>
        Promise.all(scene.nodes.map((node) => node.call("ACL", "SETUSER", "default", right)));
      const decided = async () => {
        const name = scene.name();
        const java = await scene.newJava();
        const holder = await scene.party("Java", { java });
        await holder.lock("lock", name).lock();
        const waiting = [];
        for (const side of ["Java", "Node"] as const) {
          const party = await scene.party(side, { java });
          waiting.push({
            lock: party.lock("lock", name),
            call: await party.parked(() => party.lock("lock", name).lock()),
          });
        }
        const counts = [await heard(name, "sharded"), await heard(name, "classic")];
        await holder.lock("lock", name).unlock();
        await Promise.all(waiting.map(({ lock, call }) => soon(call).then(() => lock.unlock())));
        await java.close();
        return counts;
      };
      expect(await decided()).toEqual([2, 0]);
      await allow("-pubsub|shardnumsub");
      try {
        expect(await decided()).toEqual([0, 2]);
      } finally {
        await allow("+@all");
      }
    });

    test.each<[waiter: Side, holder: Side, how: string]>([
      ["Node", "Java", "comes by pollCap"],
      ["Java", "Node", "comes when the lease would have ended"],
    ])("Java classic, Node sharded: %s does not hear of the unlock of %s, and %s", async (side, from) => {
      const name = scene.name();
      const lease = 4_000;
      const options = { java: await javaOf("classic"), node: optionsOf("sharded", { pollCap: lease }) };
      const holder = await scene.party(from, options);
      const waiter = await scene.party(side, options);
      await holder.lock("lock", name).lock(side === "Java" ? lease : undefined);
      const waiting = await waiter.parked(() => waiter.lock("lock", name).lock());
      await holder.lock("lock", name).unlock();
      expect(await (await scene.party(from, options)).lock("lock", name).isLocked()).toBe(false);
      expect(waiting.state).toBe("pending");
      await soon(waiting);
      expect(waiting.took).toBeGreaterThan(lease - 1_000);
    });
  },
  "cluster",
);
