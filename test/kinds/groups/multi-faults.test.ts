/** Contract section 4: a MultiLock when servers, connections and members fail: all or none, and a call that waits goes on. */
import { expect } from "vitest";
import { ReplyError } from "../../../src/entries/testing/reply.js";
import { MultiLock, RedisUnavailableError } from "../../../src/index.js";
import { failure, Party, SINGLE, type VirtualServer, watch } from "../../support/place/index.js";
import { type Apart, multiRow } from "./apart.js";

const WORDS = ["a0", "b1", "c0"] as const;
const serverOf = (word: string) => Number(word.at(-1));
/** The default `commandTimeout`. */
const ANSWER = 3_000;
const LEASE = 60_000;

for (const word of WORDS)
  multiRow(
    `other data in ${word} rejects WRONG_DATA, stays untouched, and nothing is held [§6 wrong-data]`,
    async ({ group, held, servers, settle }) => {
      const server = servers[serverOf(word)];
      const name = word.slice(0, -1);
      server?.execute(["SET", name, "data", "PX", "60000"]);
      const multi = group(...WORDS);
      for (const call of [() => multi.lock(), () => multi.tryLock(1_000), () => multi.run(() => 1)])
        expect(await failure(call)).toMatchObject({ code: "WRONG_DATA", lockName: name });
      await settle();
      expect(held()).toEqual([word]);
      expect(server?.execute(["GET", name])).toBe("data");
      server?.delete(name);
    },
  );

/** How the server of `b1` is away. */
const SILENCES: readonly [string, (place: Apart) => unknown][] = [
  ["hears nothing", ({ a }) => a.at(1).keep("requests")],
  ["executes what it hears, but its answers are lost", ({ a }) => a.at(1).keep("replies")],
  ["cannot be reached", ({ a }) => a.at(1).cut()],
];

for (const [what, silence] of SILENCES)
  for (const kind of SINGLE)
    multiRow(
      `with a ${kind.name} on a server that ${what}, a first call rejects UNAVAILABLE and all are given back [§2 unavailable] [F38]`,
      async (place) => {
        const { a, of, held, pass, settle } = place;
        const multi = new MultiLock(of(a, "a0"), of(a, "b1", kind), of(a, "c0"));
        await multi.run(() => {});
        await silence(place);
        const calls = [() => multi.lock(), () => multi.lock({ wait: ANSWER / 2 }), () => multi.tryLock()];
        for (const call of calls) {
          const outcome = watch(call());
          await pass(ANSWER);
          expect(outcome.error).toMatchObject({ code: "UNAVAILABLE" });
          expect(held().filter((word) => word !== "b1")).toEqual([]);
        }
        await a.at(1).mend();
        await a.letGo();
        await pass(ANSWER);
        await settle();
        expect(held()).toEqual([]);
        await multi.run(() => {});
      },
    );

/** Moments of a call, each with what it waits for then. */
const MOMENTS: readonly [string, (place: Apart) => unknown][] = [
  ...WORDS.map((word): [string, (place: Apart) => unknown] => [
    `it waits for ${word}`,
    ({ b, of }) => of(b, word).lock({ lease: LEASE }),
  ]),
  ["the requests to server 0 are on their way", ({ a }) => a.at(0).keep("requests")],
  ["the requests to server 1 are on their way", ({ a }) => a.at(1).keep("requests")],
  ["the answers of server 0 are on their way", ({ a }) => a.at(0).keep("replies")],
  ["the answers of server 1 are on their way", ({ a }) => a.at(1).keep("replies")],
];

for (const [what, prepare] of MOMENTS)
  multiRow(
    `a call ends at once by its abort, or by the close of either client, while ${what} [§2 signal] [B133]`,
    async (place) => {
      const { a, group, held, pass, settle } = place;
      await group(...WORDS).run(() => {});
      await prepare(place);
      const others = held();
      const reason = new RedisUnavailableError("of another call");
      const controller = new AbortController();
      const lease = { lease: 20_000, wait: 600_000 };
      const aborted = watch(group(...WORDS).lock({ ...lease, signal: controller.signal }));
      await settle();
      controller.abort(reason);
      await settle();
      expect(aborted.error).toBe(reason);
      const closed = watch(group(...WORDS).lock(lease));
      await settle();
      const closing = a.clients[1]?.close({ timeout: 0 });
      await settle();
      expect(closed.outcome).toBe("CLIENT_CLOSED");
      await a.letGo();
      await closing;
      expect(await failure(group(...WORDS).lock())).toMatchObject({ code: "CLIENT_CLOSED" });
      expect(await failure(group(...WORDS).isLocked())).toMatchObject({ code: "CLIENT_CLOSED" });
      await pass(ANSWER);
      expect(held()).toEqual(others);
      await pass(LEASE);
      await a.close();
    },
  );

multiRow(
  "one member is refused while another one's server is silent: the call waits for the first [§4 multi]",
  async ({ a, b, of, group, pass }) => {
    const theirs = await of(b, "a0").lock();
    a.at(1).keep("requests");
    const call = watch(group("a0", "b1").lock());
    await pass(2 * ANSWER);
    expect(call.outcome).toBe("pending");
    await a.letGo();
    await theirs.unlock();
    await pass(ANSWER);
    await call.value?.unlock();
    expect(call.state).toBe("resolved");
  },
);

for (const moment of [0, 1, 2, 3, 4])
  multiRow(
    `a call that has waited survives a silence that begins with answer ${moment} of server 1 [§2 waiting-survives-outage] [B183]`,
    async ({ a, b, of, group, held, pass }) => {
      const theirs = await of(b, "a0").lock();
      const call = watch(group(...WORDS).lock({ lease: LEASE }));
      await pass(1_000);
      a.at(1).keep("replies");
      await theirs.unlock();
      for (let i = 0; i < moment; i++) await a.at(1).letOneGo();
      await pass(2 * ANSWER);
      if (call.state === "pending") expect(held()).not.toContain("a0");
      await a.letGo();
      await pass(3 * ANSWER);
      expect(call.value?.isHeld).toBe(true);
      await call.value?.unlock();
    },
  );

multiRow(
  "a wait that ends while a server is away is UNAVAILABLE, and one that ends while others hold a member is not [§2 last-try-unanswered]",
  async ({ a, b, of, group, pass }) => {
    const theirs = await of(b, "a0").lock();
    const calls = () => [watch(group(...WORDS).lock({ wait: 8_000 })), watch(group(...WORDS).tryLock(8_000))];
    const first = calls();
    await pass(8_000);
    expect(first.map(({ outcome }) => outcome)).toEqual(["WAIT_TIMEOUT", null]);
    const second = calls();
    await pass(1_000);
    await a.at(1).cut();
    await theirs.unlock();
    await pass(7_000);
    expect(second.map(({ outcome }) => outcome)).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
    await a.at(1).mend();
    await pass(ANSWER);
  },
);

multiRow(
  "a wait that ends while the members get it, though Redis answers, ends as one of contention does [§2 wait-timeout] [B47]",
  async ({ a, b, of, group, pass }) => {
    const theirs = await of(b, "b1").lock();
    const call = watch(group("a0", "b1").tryLock(3_000, 100_000));
    await pass(2_900);
    a.at(0).keep("replies");
    await theirs.unlock();
    await pass(100);
    expect(call.outcome).toBeNull();
    await a.letGo();
    await pass(ANSWER);
  },
  { commandTimeout: 600_000 },
);

for (const [what, take] of [
  ["lock", (multi: MultiLock) => multi.lock({ wait: 200 })],
  ["tryLock", (multi: MultiLock) => multi.tryLock(200)],
  ["run", (multi: MultiLock) => multi.run(() => 1, { wait: 200 })],
] as const)
  multiRow(
    `${what} waits no longer than its wait for the replicas of a member, nor for what is undone then [§2 wait] [B233]`,
    async ({ of, a, servers, pass }) => {
      const server = servers[1] as VirtualServer;
      const strict = new Party([server], { replicas: 1, replicasTimeout: 2_000 });
      const [, , grants] = strict.connections;
      const multi = new MultiLock(of(a, "a0"), strict.client.getLock("b"));
      for (const [acknowledged, kept] of [
        [1, grants],
        [0, undefined],
      ] as const) {
        server.instead = ({ name }) => (name === "WAIT" ? acknowledged : undefined);
        strict.keep("replies", kept);
        const call = watch<unknown>(take(multi));
        await pass(199);
        expect(call.outcome).toBe("pending");
        await pass(1);
        expect(call.outcome).toBe("UNAVAILABLE");
        expect(await of(a, "a0").isLocked()).toBe(false);
        await strict.letGo();
        await pass(ANSWER);
      }
      await strict.close();
    },
  );

multiRow(
  "an error names the group, or the one member that failed [§4 group-face]",
  async ({ a, b, of, group, servers, pass, settle }) => {
    const multi = group("a0", "b1");
    const theirs = await of(b, "b1").lock({ lease: 1_000 });
    const late = watch(multi.lock({ wait: 100 }));
    await pass(1_000);
    expect([late.error, await failure(multi.unlock()), theirs.isHeld]).toMatchObject([
      { code: "WAIT_TIMEOUT", lockName: "a,b" },
      { code: "NOT_OWNER", lockName: "a,b" },
      false,
    ]);
    const server = servers[1];
    if (server)
      server.instead = ({ args }) => {
        if (args.includes("b")) throw new ReplyError("NOPERM this user has no permissions");
        return undefined;
      };
    expect(await failure(multi.isLocked())).toMatchObject({ code: "UNSUPPORTED", lockName: "b" });
    if (server) server.instead = () => undefined;
    const hold = await multi.lock();
    server?.delete("b");
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", lockName: "b" });
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", lockName: "a,b" });
    await a.clients[1]?.close({ timeout: 0 });
    expect(await failure(multi.lock())).toMatchObject({ code: "CLIENT_CLOSED", lockName: "a,b" });
    await settle();
  },
);
