/** Contract section 4: the queue of a fair lock, which Redis keeps, and those who join and leave it. */
import { expect } from "vitest";
import { fairAlive, fairQueue, fairTimeouts } from "../../src/base/names.js";
import { INTERNALS } from "../../src/client-options.js";
import type { Hold, Lock, LockClientOptions } from "../../src/index.js";
import { FAIR, failure, NAME, row, type VirtualPlace, type Watched, watch } from "../support/place/index.js";
import { skewed } from "../support/virtual-clock.js";

const kinds = [FAIR];
const client = { pollCap: 600_000, commandTimeout: 30_000, watchdogTimeout: 900_000 };

/** Unlocks what the calls have, one after the other; each is granted only then, and in this order. */
async function servedInOrder({ pass }: VirtualPlace, calls: readonly Watched<Hold>[]): Promise<void> {
  for (const [i, call] of calls.entries()) {
    await pass(100);
    expect(calls.map(({ state }) => state === "resolved")).toEqual(calls.map((_, other) => other <= i));
    await call.value?.unlock();
  }
}

row(
  "a try that does not wait takes no place, and does not overtake a queue whose lock is free [§4 fair]",
  { kinds, client },
  async (place) => {
    const { lock, twin, b, settle, view } = place;
    const hold = await lock.lock();
    expect(await twin.tryLock()).toBeNull();
    expect(await view.keys()).toEqual([NAME]);
    const head = watch(twin.lock());
    await settle();
    // The head does not hear that it is its turn.
    b.keep("requests");
    await hold.unlock();
    await settle();
    expect([await lock.isLocked(), await lock.tryLock()]).toEqual([false, null]);
    const second = watch(lock.lock());
    await settle();
    await b.letGo();
    await servedInOrder(place, [head, second]);
  },
);

row(
  "siblings inside a run take turns while others queue, and wait in no queue of their own [§4 fair] [§3 parallel-runs]",
  { kinds, client },
  async ({ lock, twin, settle }) => {
    const order: string[] = [];
    let other: Watched<void> | undefined;
    await lock.run(async () => {
      other = watch(twin.run(() => void order.push("other")));
      await settle();
      const siblings = ["a", "b", "c"].map((name) =>
        lock.run(async () => {
          order.push(name);
          await lock.isLocked();
        }),
      );
      await Promise.all(siblings);
    });
    await settle();
    expect([order, other?.state]).toEqual([["a", "b", "c", "other"], "resolved"]);
  },
);

row(
  "parallel calls of one scope are granted together, and the places that they do not need are given up [§4 fair] [§3 second-while-first-waits]",
  { kinds, client },
  async ({ lock, twin, client: mine, settle, pass }) => {
    const hold = await twin.lock();
    await mine.scope(async () => {
      const calls = [1, 2, 3].map(() => watch(lock.lock()));
      await settle();
      const behind = watch(twin.lock());
      await settle();
      await hold.unlock();
      await pass(100);
      expect(calls.map(({ state }) => state)).toEqual(["resolved", "resolved", "resolved"]);
      expect([await lock.getHoldCount(), behind.state]).toEqual([3, "pending"]);
      for (const _ of calls) await lock.unlock();
      await pass(100);
      await behind.value?.unlock();
      expect(behind.state).toBe("resolved");
    });
  },
);

/** How a wait can end, and with what. */
const WAYS = [
  ["is aborted", "enough"],
  ["times out", "WAIT_TIMEOUT"],
  ["is ended by the close of its client", "CLIENT_CLOSED"],
] as const;

for (const [way, outcome] of WAYS) {
  row(
    `a waiter that ${way} leaves no entry, and the lock goes on to the one behind it, also if it was its turn [§4 fair] [F33]`,
    { kinds, client },
    async ({ lock, kind, party, pass, settle, view }) => {
      for (const isItsTurn of [false, true]) {
        for (const isLast of [false, true]) {
          const other = party();
          const theirs = kind.make(other.clients, NAME);
          const controller = new AbortController();
          const hold = await lock.lock();
          const options = way === "times out" ? { wait: 5_000 } : { signal: controller.signal };
          const leaving = watch(theirs.lock(options));
          await settle();
          const behind = isLast ? undefined : watch(lock.lock());
          await settle();
          if (isItsTurn) {
            other.keep("requests");
            await hold.unlock();
            await settle();
          }
          if (way === "is aborted") controller.abort("enough");
          if (way === "times out") await pass(5_000);
          const closed = way === "is ended by the close of its client" ? other.close() : undefined;
          await settle();
          // A call whose last try has no answer cannot know whether others have the lock.
          expect(leaving.outcome).toBe(isItsTurn && way === "times out" ? "UNAVAILABLE" : outcome);
          await other.letGo();
          await pass(100);
          await closed;
          if (!isItsTurn) {
            if (isLast) expect(await view.keys()).toEqual([NAME]);
            await hold.unlock();
          }
          await settle();
          expect(behind?.state ?? "resolved").toBe("resolved");
          await behind?.value?.unlock();
          expect(await view.keys()).toEqual([]);
        }
      }
    },
  );
}

row(
  "a waiter of Redisson is respected until its time is over, and skipped then [§4 fair]",
  { kinds, client },
  async (place) => {
    const { lock, twin, server, pass, settle } = place;
    const [seconds, micros] = server.execute(["TIME"]) as [string, string];
    const over = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000) + 1_500;
    server.execute(["ZADD", fairTimeouts(NAME), String(over), "java:1"]);
    server.execute(["RPUSH", fairQueue(NAME), "java:1"]);
    expect(await lock.tryLock()).toBeNull();
    const calls = [watch(lock.lock())];
    await settle();
    calls.push(watch(twin.lock()));
    await pass(1_400);
    expect(calls.map(({ state }) => state)).toEqual(["pending", "pending"]);
    await pass(200);
    await servedInOrder(place, calls);
  },
);

row(
  "a head whose process is silent is skipped three poll caps after it was heard last, before Redisson's minutes, and has to queue again [§4 fair] [F31]",
  { kinds, client: { ...client, pollCap: 1_000, fairWaitTimeout: 60_000 } },
  async (place) => {
    const { lock, twin, kind, party, pass, settle } = place;
    const silent = party();
    const hold = await lock.lock();
    const head = watch(kind.make(silent.clients, NAME).lock());
    await settle();
    const behind: Watched<Hold>[] = [];
    for (let i = 0; i < 9; i++) {
      behind.push(watch((i % 2 ? lock : twin).lock()));
      await settle();
    }
    await silent.cut();
    await hold.unlock();
    await pass(2_900);
    expect(new Set(behind.map(({ state }) => state))).toEqual(new Set(["pending"]));
    // Its last chance, too.
    await pass(300);
    await servedInOrder(place, behind.slice(0, 5));
    await silent.mend();
    await settle();
    await servedInOrder(place, [...behind.slice(5), head]);
  },
);

row(
  "a server that stood still until all places had lapsed keeps the order, and nobody overtakes [§4 fair] [B221]",
  { kinds, client: { ...client, pollCap: 300 } },
  async (place) => {
    const { a, b, lock, twin, kind, party, pass, settle } = place;
    const [third, newcomer] = [party(), party()];
    const [thirdLock, newLock] = [third, newcomer].map(({ clients }) => kind.make(clients, NAME)) as [
      Lock,
      Lock,
    ];
    const hold = await lock.lock();
    // So that the newcomer sends one command only.
    await newLock.isLocked();
    const calls: Watched<Hold>[] = [];
    for (const waiting of [twin, thirdLock, twin, thirdLock]) {
      calls.push(watch(waiting.lock()));
      await settle();
    }
    const all = [a, newcomer, b, third];
    for (const each of all) each.keep("requests");
    const [given, tried] = [watch(hold.unlock()), watch(newLock.tryLock())];
    await pass(2_000);
    // In the order in which the server reads what came meanwhile.
    for (const each of all) await each.letGo();
    expect([given.state, tried.outcome]).toEqual(["resolved", null]);
    await servedInOrder(place, calls);
  },
);

row(
  "clients whose clocks are hours apart keep the order, and no clock but the server's is in the queue [§4 fair] [F32]",
  { kinds, client: { pollCap: 60_000, fairWaitTimeout: 2_000, watchdogTimeout: 30_000 } },
  async (place) => {
    const { kind, party, server, settle } = place;
    const hour = 3_600_000;
    const locks = [0, hour, -hour].map((shift) => {
      const clock = skewed(server.clock, () => shift);
      return kind.make(party({ [INTERNALS]: { clock } } as LockClientOptions).clients, NAME);
    });
    const lock = (i: number) => locks[i] as Lock;
    const hold = await lock(1).lock();
    const calls: Watched<Hold>[] = [];
    for (const i of [1, 2, 0, 2, 1, 0]) {
      calls.push(watch(lock(i).lock()));
      await settle();
    }
    for (const each of locks) expect(await each.tryLock()).toBeNull();
    for (const key of [fairTimeouts(NAME), fairAlive(NAME)]) {
      const times = [...(server.keys.get(key, "zset") ?? [])].map(([, time]) => Number(time));
      expect(times).toHaveLength(6);
      for (const time of times) expect(Math.abs(time - server.clock.wall())).toBeLessThan(hour / 4);
    }
    await hold.unlock();
    await servedInOrder(place, calls);
  },
);

row(
  "fifty waiters keep their places for as long as the holder renews, by one command for two polls [§4 fair] [§2 poll-cap]",
  { kinds, client: { fairWaitTimeout: 2_000, pollCap: 1_500, watchdogTimeout: 4_500 } },
  async (place) => {
    const { lock, twin, party, pass, settle, kind, server } = place;
    const hold = await lock.lock();
    const calls: Watched<Hold>[] = [];
    for (let i = 0; i < 50; i++) {
      calls.push(watch(twin.lock()));
      await settle();
    }
    const stranger = kind.make(party().clients, NAME);
    const queue = server.execute(["LRANGE", fairQueue(NAME), "0", "-1"]);
    for (let polls = 0; polls < 8; polls++) {
      server.took();
      await pass(1_500);
      expect(server.took().length).toBeLessThanOrEqual(4);
      // Tries of other clients remove the dead from the queue.
      expect(await stranger.tryLock()).toBeNull();
      expect(server.execute(["LRANGE", fairQueue(NAME), "0", "-1"])).toEqual(queue);
    }
    await hold.unlock();
    await servedInOrder(place, calls);
  },
);

row(
  "a wait through a lost connection keeps its place, and a try whose reply is lost has one place [§4 fair] [§2 counts-once]",
  { kinds, client },
  async (place) => {
    const { lock, twin, a, server, settle, pass } = place;
    const hold = await twin.lock();
    await (await twin.lock({ owner: hold })).unlock();
    a.keep("replies");
    const first = watch(lock.lock());
    await settle();
    await a.reconnect();
    await settle();
    const second = watch(twin.lock());
    await settle();
    expect(server.execute(["LLEN", fairQueue(NAME)])).toBe(2);
    await a.cut();
    await pass(1_000);
    await a.mend();
    await pass(1_000);
    await hold.unlock();
    await servedInOrder(place, [first, second]);
  },
);

row(
  "waiters whose queue was deleted beneath a holder come back to it with their next look [§4 fair]",
  { kinds, client: { pollCap: 300 } },
  async ({ lock, twin, server, settle, pass }) => {
    const hold = await lock.lock();
    const calls = [1, 2, 3, 4, 5].map(() => watch(twin.run(() => {})));
    await settle();
    for (const key of [fairQueue, fairTimeouts, fairAlive]) server.delete(key(NAME));
    await pass(2_000);
    expect(server.execute(["LLEN", fairQueue(NAME)])).toBe(5);
    await hold.unlock();
    await pass(1_000);
    expect(calls.map(({ state }) => state)).toEqual(calls.map(() => "resolved"));
  },
);

row(
  "a crowd that gives up at once leaves by few commands, and an unlock goes before most of them [§4 fair] [B37]",
  { kinds, client },
  async ({ lock, client: mine, server, pass, settle, a }) => {
    const hold = await lock.lock();
    const controllers = Array.from({ length: 400 }, () => new AbortController());
    const calls = controllers.map(({ signal }) => watch(lock.lock({ signal })));
    await pass(100);
    expect(server.execute(["LLEN", fairQueue(NAME)])).toBe(400);
    server.took();
    a.keep("requests");
    for (const controller of controllers) controller.abort("enough");
    const back = watch(hold.unlock());
    await settle();
    expect(a.onTheirWay).toBeLessThanOrEqual(33);
    await a.letGo();
    await pass(1_000);
    expect([back.state, calls.every(({ error }) => error === "enough")]).toEqual(["resolved", true]);
    expect(server.took().length).toBeLessThanOrEqual(20);
    expect(await mine.inspect(NAME)).toBeNull();
  },
);

row(
  "when waiters time out the turns of those behind them come nearer, for Redisson's too [§4 fair]",
  { kinds, client },
  async (place) => {
    const { lock, twin, server, pass, settle } = place;
    const hold = await lock.lock();
    const stays: Watched<Hold>[] = [];
    for (let i = 0; i < 4; i++) {
      for (let j = 0; j < 10; j++) void watch(lock.lock({ wait: 9_000 }));
      await settle();
      stays.push(watch(twin.lock()));
      await settle();
    }
    await pass(10_000);
    const entries = server.execute(["ZRANGE", fairTimeouts(NAME), "0", "-1", "WITHSCORES"]) as string[];
    const scores = entries.filter((_, i) => i % 2 === 1).map(Number);
    const [first = 0] = scores;
    // Tickets one turn apart, as if the waiters in between had never come.
    expect(scores.map((score) => Math.round((score - first) / 300_000))).toEqual([0, 1, 2, 3]);
    await hold.unlock();
    await servedInOrder(place, stays);
  },
);

row(
  "fair locks of the names a and {a} have one queue, as Redisson has it [§4 fair] [§7 wire]",
  { kinds, client },
  async ({ lock, twin, rivals, settle }) => {
    const braced = rivals.getFairLock(`{${NAME}}`);
    const held = await lock.lock();
    const waiting = watch(twin.lock());
    await settle();
    expect([await braced.isLocked(), await failure(braced.lock({ wait: 0 }))]).toMatchObject([
      false,
      { code: "WAIT_TIMEOUT" },
    ]);
    await held.unlock();
    await settle();
    await waiting.value?.unlock();
    const free = await braced.tryLock();
    expect(free?.isHeld).toBe(true);
    await free?.unlock();
  },
);
