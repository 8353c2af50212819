/** Contract section 3: where scopes and runs end, and what of the library runs outside them. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "vitest";
import type { Hold, LockEventName } from "../../src/index.js";
import { EVENTS } from "../support/event-names.js";
import { deferred, failure, PLAIN, type Place, row, watch } from "../support/place/index.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** What a call sees of its async context, while a scope that may be around it holds `other`. */
async function surroundings({ lock, other }: Place): Promise<string> {
  const count = await other.getHoldCount();
  const isOutside = (await failure(lock.unlock())).message.includes("outside a scope");
  return `${isOutside ? "outside" : "inside"}, ${count} held`;
}

const OUTSIDE = "outside, 0 held";

const HOW_IT_SETTLES: readonly [string, () => void][] = [
  ["returned", () => {}],
  [
    "thrown",
    () => {
      throw new Error("mine");
    },
  ],
];

for (const [how, settles] of HOW_IT_SETTLES) {
  row(
    `a timer that outlives a scope whose function has ${how} is outside, and its bare calls are strangers' [§3 ends]`,
    async (place) => {
      const { client, lock, other, excluded } = place;
      const over = deferred();
      const seen = deferred<[string, Hold | null]>();
      let hold: Hold | undefined;
      const scope = client.scope(async () => {
        const later = async () => {
          await over.promise;
          seen.resolve([await surroundings(place), await excluded.tryLock()]);
        };
        setImmediate(() => void later());
        hold = await lock.lock();
        await other.lock();
        expect(await other.getHoldCount()).toBe(1);
        await other.unlock();
        settles();
      });
      await scope.catch(() => {});
      over.resolve();
      expect(await seen.promise).toEqual([OUTSIDE, null]);
      await hold?.unlock();
    },
  );

  row(
    `a call that outlives a run whose function has ${how} does not re-enter what a later run holds [§3 ends]`,
    async ({ lock, excluded }) => {
      const go = deferred();
      let call: Promise<Hold | null> | undefined;
      const run = lock.run(() => {
        call = go.promise.then(() => excluded.tryLock());
        settles();
      });
      await run.catch(() => {});
      await lock.run(async () => {
        go.resolve();
        expect(await call).toBeNull();
      });
      expect(lock.currentHold()).toBeNull();
    },
  );
}

row(
  "a call that outlives an Owner's scope, or a run with that owner, does not act for it [§3 ends]",
  async (place) => {
    const { client, lock, other } = place;
    const owner = client.newOwner();
    const over = deferred();
    const seen: Promise<string>[] = [];
    const look = () => void seen.push(over.promise.then(() => surroundings(place)));
    await owner.scope(async () => {
      look();
      await other.lock();
    });
    await lock.run(look, { owner });
    over.resolve();
    expect(await Promise.all(seen)).toEqual([OUTSIDE, OUTSIDE]);
    await other.unlock({ owner });
  },
);

row(
  "a run that outlives the run it was called in is beside later ones, not inside [§3 ends]",
  async ({ client, lock, kind, settle }) => {
    if (!kind.exclusive) return;
    await client.scope(async () => {
      const end = deferred();
      const order: string[] = [];
      const inner = await lock.run(async () => {
        const run = lock.run(async () => {
          await end.promise;
          order.push("inner");
        });
        await settle();
        return { run };
      });
      const next = lock.run(() => order.push("next"));
      await settle();
      expect(order).toEqual([]);
      end.resolve();
      await Promise.all([inner.run, next]);
      expect(order).toEqual(["inner", "next"]);
    });
  },
);

/** A port that this process listens on; the server is started in the caller's context. */
async function listening(handler: (socket: Socket) => void): Promise<{ port: number; stop: () => void }> {
  const listener = createServer(handler);
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return { port: (listener.address() as AddressInfo).port, stop: () => listener.close() };
}

const ask = (port: number) => text(connect(port, "127.0.0.1"));

/** The context of sockets is Node's, and the same for all kinds. */
const SOCKETS = { kinds: [PLAIN] };

row.real(
  "a server that is started inside a scope or a run serves outside of it [§3 ends]",
  SOCKETS,
  async (place) => {
    const { client, lock, other, rival } = place;
    const serve = () => listening((socket) => void surroundings(place).then((seen) => socket.end(seen)));
    const { service, hold } = await client.scope(async () => ({
      hold: await other.lock(),
      service: await serve(),
    }));
    expect(await ask(service.port)).toBe(OUTSIDE);
    expect(await client.scope(() => ask(service.port))).toBe(OUTSIDE);
    service.stop();
    await hold.unlock();
    const tries = await lock.run(() =>
      listening((socket) => {
        void lock.tryLock().then(async (mine) => {
          await mine?.unlock();
          socket.end(mine ? "granted" : "refused");
        });
      }),
    );
    expect(await ask(tries.port)).toBe("granted");
    expect(await lock.run(() => ask(tries.port))).toBe("refused");
    tries.stop();
    await (await rival.lock()).unlock();
  },
);

row(
  "holds that a scope leaves stay held, and their Hold gives them back [§3 ends]",
  async ({ client, lock, twin, pass }) => {
    const holds = await client.scope(() => Promise.all([lock.lock(), lock.lock()]));
    await pass(60_000);
    for (const hold of holds) {
      expect([hold.isHeld, hold.signal.aborted]).toEqual([true, false]);
      await hold.unlock();
    }
    expect(await twin.isLocked()).toBe(false);
  },
);

row(
  "a call is inside an open run, whatever scopes have ended between them [§3 ends]",
  async ({ client, lock, settle }) => {
    const [firstMayGoOn, secondMayGoOn] = [deferred(), deferred()];
    const outer = watch(
      lock.run(async (hold) => {
        const second = async (): Promise<string> => {
          await secondMayGoOn.promise;
          // A run of the same owner, which has to wait for the outer one unless it is inside.
          return lock.run(() => "inside", { owner: hold });
        };
        const first = async () => {
          await firstMayGoOn.promise;
          return { second: client.scope(second) };
        };
        const begun = await client.scope(() => ({ first: client.scope(first) }));
        firstMayGoOn.resolve();
        const { second: last } = await begun.first;
        secondMayGoOn.resolve();
        return last;
      }),
    );
    await settle();
    expect(outer.value).toBe("inside");
  },
);

row(
  "an unbroken chain of scopes, each begun before the one before has settled, keeps none that has ended [§3 ends] [B228]",
  { kinds: [PLAIN] },
  async ({ client }) => {
    const HALF = 20_000;
    const used: number[] = [];
    const over = deferred();
    let begun = 0;
    const begin = (): void => {
      void client.scope(async () => {
        await undefined;
        if (++begun % HALF === 0) {
          collect();
          used.push(process.memoryUsage().heapUsed);
        }
        if (begun < 2 * HALF) begin();
        else over.resolve();
      });
    };
    begin();
    await over.promise;
    const [first = 0, second = 0] = used;
    // Bytes for each scope; one that is kept takes more than a hundred.
    expect((second - first) / HALF).toBeLessThan(40);
  },
);

row(
  "listeners of events run outside every scope, whoever caused them [§3 listeners-outside]",
  { client: { warnAfter: 1_500, watchdogTimeout: 3_000, commandTimeout: 1_000 } },
  async ({ a, client, lock, other, rival, pass, settle }) => {
    const seen = new Map<LockEventName, Set<boolean>>();
    for (const name of EVENTS)
      client.on(name, () => {
        const inside = other.currentHold() !== null;
        seen.set(name, (seen.get(name) ?? new Set()).add(inside));
      });
    await client.scope(async () => {
      const hold = await other.lock({ lease: 600_000 });
      expect(other.currentHold()).toBe(hold);
      const theirs = await rival.lock();
      expect(await lock.tryLock()).toBeNull();
      const late = watch(lock.lock({ wait: 100 }));
      await pass(100);
      expect(late.outcome).toBe("WAIT_TIMEOUT");
      await theirs.unlock();
      const lost = await lock.lock();
      await pass(1_500);
      await a.cut();
      await pass(10_000);
      expect(await failure(lost.unlock())).toMatchObject({ code: "LOCK_LOST" });
      await a.mend();
      await pass(1_000);
      const run = watch(lock.run(() => a.keep("requests")));
      await pass(2_000);
      expect(run.state).toBe("resolved");
      await a.letGo();
      await settle();
      await hold.unlock();
    });
    expect(Object.fromEntries(seen)).toEqual(
      Object.fromEntries(EVENTS.map((name) => [name, new Set([false])])),
    );
  },
);

row.real(
  "a hold's signal aborts outside every scope, whatever ended the hold [§3 listeners-outside]",
  async ({ client, lock, other, twin, pass, eventually }) => {
    const seen: boolean[] = [];
    const hear = ({ signal }: Hold) =>
      signal.addEventListener("abort", () => void seen.push(other.currentHold() !== null));
    await client.scope(async () => {
      await other.lock();
      const forced = await lock.lock();
      hear(forced);
      await lock.forceUnlock();
      await eventually(() => forced.signal.aborted);
      await failure(forced.unlock());
      const gone = await lock.lock();
      hear(gone);
      await twin.forceUnlock();
      await failure(gone.unlock());
      const over = await lock.lock({ lease: 1_000 });
      hear(over);
      await pass(1_000);
      await eventually(() => over.signal.aborted);
      await failure(over.unlock());
      await other.unlock();
    });
    expect(seen).toEqual([false, false, false]);
  },
);
