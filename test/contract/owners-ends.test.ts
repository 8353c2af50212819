/** Contract section 3, where scopes and runs end: one test for each sentence. */

import { once } from "node:events";
import { createServer as createHttpServer, get } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect } from "vitest";
import { type Hold, LockClient, type LockEventName } from "../../src/index.js";
import { connectionLike, STEADY, startProxy, until } from "../support/index.js";
import { deferred, EVENTS, failure, runAtLast, takeBriefly } from "./helpers.js";
import { eachKind } from "./scene.js";

eachKind("where scopes and runs end", (base, kind) => {
  /** What a call sees of its async context; the scope that made the context holds `other`. */
  const test = base.extend<{ surroundings: () => Promise<string> }>({
    surroundings: ({ lock, other }, use) =>
      use(async () => {
        const count = await other.getHoldCount();
        const error = await failure(lock.unlock());
        const outside = error.message.includes("client.scope");
        return `${outside ? "outside" : "inside"}, ${count} held`;
      }),
  });

  const OUTSIDE = "outside, 0 held";
  const fails = (): never => {
    throw new Error("mine");
  };

  /** A port that this process listens on; the server is started in the caller's context. */
  async function listening(handler: (socket: Socket) => void): Promise<{ port: number; stop: () => void }> {
    const listener = createServer(handler);
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    return { port: (listener.address() as AddressInfo).port, stop: () => listener.close() };
  }

  async function ask(port: number): Promise<string> {
    return text(connect(port, "127.0.0.1"));
  }

  async function fetchText(port: number): Promise<string> {
    const request = get({ port, host: "127.0.0.1", agent: false });
    const [response] = await once(request, "response");
    return text(response);
  }

  describe("a scope ends when its fn settles", () => {
    test("calls inside before that count as inside", async ({ client, other, surroundings }) => {
      await client.scope(async () => {
        await other.lock();
        await new Promise((resolve) => setTimeout(resolve, 1));
        expect(await surroundings()).toBe("inside, 1 held");
        await other.unlock();
      });
    });

    test.for([
      ["timers that outlive it count as outside any scope", () => {}],
      ["also when fn throws", fails],
    ] as const)("%s", async ([, ends], { client, other, surroundings }) => {
      const over = deferred();
      const seen = deferred<string>();
      let hold: Hold | undefined;
      const scope = client.scope(async () => {
        setTimeout(() => void over.promise.then(surroundings).then(seen.resolve), 1);
        hold = await other.lock();
        ends();
      });
      await scope.catch(() => {});
      over.resolve();
      expect(await seen.promise).toBe(OUTSIDE);
      await hold?.unlock();
    });

    test("a bare call there is a new owner's each time", async ({ client, lock, excluded }) => {
      const over = deferred();
      const done = deferred<Hold | null>();
      const hold = await client.scope(async () => {
        setTimeout(() => void over.promise.then(() => excluded.tryLock()).then(done.resolve), 1);
        return lock.lock();
      });
      over.resolve();
      expect(await done.promise).toBeNull();
      await hold.unlock();
    });

    test("sockets", async ({ client, other, surroundings }) => {
      const { port, stop } = await listening((socket) => {
        void surroundings().then((seen) => socket.end(seen));
      });
      const answered = deferred<string>();
      const hold = await client.scope(async () => {
        const taken = await other.lock();
        const socket = connect(port, "127.0.0.1");
        let seen = "";
        socket.on("data", (chunk) => {
          seen = String(chunk);
        });
        socket.on("end", () => void surroundings().then((mine) => answered.resolve(`${seen}; ${mine}`)));
        return taken;
      });
      expect(await answered.promise).toBe(`${OUTSIDE}; ${OUTSIDE}`);
      await hold.unlock();
      stop();
    });

    test("a server started inside", async ({ client, other, surroundings }) => {
      const { service, hold } = await client.scope(async () => ({
        hold: await other.lock(),
        service: await listening((socket) => {
          void surroundings().then((seen) => socket.end(seen));
        }),
      }));
      expect(await ask(service.port)).toBe(OUTSIDE);
      expect(await client.scope(() => ask(service.port))).toBe(OUTSIDE);
      await hold.unlock();
      service.stop();
    });

    test("an http server started inside: its requests take turns like strangers", async ({
      client,
      other,
      excluded,
      surroundings,
    }) => {
      const ids = new Set<string>();
      let inside = 0;
      let most = 0;
      const work = async (): Promise<string> => {
        const hold = await excluded.lock();
        ids.add(hold.ownerId);
        most = Math.max(most, ++inside);
        await new Promise((resolve) => setTimeout(resolve, 2));
        inside--;
        await hold.unlock();
        return surroundings();
      };
      const { http, hold } = await client.scope(async () => {
        const http = createHttpServer((_, response) => void work().then((seen) => response.end(seen)));
        http.listen(0, "127.0.0.1");
        await once(http, "listening");
        return { http, hold: await other.lock() };
      });
      const { port } = http.address() as AddressInfo;
      const answers = await Promise.all([1, 2, 3].map(() => fetchText(port)));
      expect(answers).toEqual([OUTSIDE, OUTSIDE, OUTSIDE]);
      expect([ids.size, most]).toEqual([3, 1]);
      await hold.unlock();
      http.close();
    });

    test("an owner's scope likewise", async ({ client, other, surroundings }) => {
      const over = deferred();
      const seen = deferred<string>();
      const owner = client.newOwner();
      await owner.scope(async () => {
        setTimeout(() => void over.promise.then(surroundings).then(seen.resolve), 1);
        await other.lock();
      });
      over.resolve();
      expect(await seen.promise).toBe(OUTSIDE);
      await other.unlock({ owner });
    });
  });

  describe("a run likewise", () => {
    test.for([
      ["a timer of fn that outlives it does not re-enter what a later run holds", () => {}],
      ["also when fn throws", fails],
    ] as const)("%s", async ([, ends], { lock, excluded }) => {
      const go = deferred();
      const done = deferred<Hold | null>();
      const run = lock.run(async () => {
        void go.promise.then(() => excluded.tryLock()).then(done.resolve);
        ends();
      });
      await run.catch(() => {});
      await lock.run(async () => {
        go.resolve();
        expect(await done.promise).toBeNull();
      });
    });

    test("a server started inside", async ({ lock, excluded }) => {
      const service = await lock.run(() =>
        listening((socket) => {
          void excluded.tryLock().then(async (hold) => {
            await hold?.unlock();
            socket.end(hold ? "granted" : "refused");
          });
        }),
      );
      expect(await ask(service.port)).toBe("granted");
      await lock.run(async () => expect(await ask(service.port)).toBe("refused"));
      service.stop();
    });

    test("with an owner, whose scope for fn ends too", async ({ client, lock, other, surroundings }) => {
      const over = deferred();
      const seen = deferred<string>();
      const owner = client.newOwner();
      const hold = await other.lock({ owner });
      await lock.run(
        () => {
          setTimeout(() => void over.promise.then(surroundings).then(seen.resolve), 1);
        },
        { owner },
      );
      over.resolve();
      expect(await seen.promise).toBe(OUTSIDE);
      await hold.unlock();
    });
  });

  test("holds still held stay held; their Hold gives them back", async ({ client, lock, wire }) => {
    const [first, second] = await client.scope(() => Promise.all([lock.lock(), lock.lock()]));
    expect([first?.isHeld, second?.isHeld]).toEqual([true, true]);
    expect(await wire.count()).toBe(2);
    expect(first?.signal.aborted).toBe(false);
    await first?.unlock();
    expect(await wire.count()).toBe(1);
    await second?.unlock();
    expect(await wire.keys()).toEqual([]);
  });

  describe("listeners and timers of the library run outside every scope, whoever caused them", () => {
    test("of client events", async ({ server, client, lockName, other }) => {
      await using proxy = await startProxy(server);
      await using subject = new LockClient(connectionLike(proxy.connect()), {
        watchdogTimeout: STEADY,
        // An unanswered renewal fails, and is reported, before the hold is lost.
        commandTimeout: STEADY / 3,
        warnAfter: 1_500,
      });
      const [mine, held] = [kind.make(subject, lockName), kind.make(subject, other.name)];
      const seen = new Map<LockEventName, string>();
      const look = async (): Promise<string> => {
        const count = await held.getHoldCount();
        return `${(await failure(mine.unlock())).message.includes("client.scope") ? "outside" : "inside"}, ${count} held`;
      };
      const note = async (name: LockEventName) => void seen.set(name, await look());
      for (const name of EVENTS) subject.on(name, () => void note(name).catch(() => {}));
      await until("Redis answers", () => subject.ready().then(() => true));
      await subject.scope(async () => {
        const hold = await held.lock({ lease: 60_000 });
        await until("acquired", () => seen.has("acquired"));
        seen.clear();
        const theirs = await client.scope(() => kind.rival.make(client, "c").lock({ lease: 60_000 }));
        expect(await kind.make(subject, "c").tryLock(2_500)).toBeNull();
        await until("waiting", () => seen.has("waiting"));
        expect(await kind.make(subject, "c").tryLock()).toBeNull();
        await until("rejected", () => seen.has("rejected"));
        await theirs.unlock();
        await until("longHold", () => seen.has("longHold"));
        await (await kind.make(subject, "d").lock()).unlock();
        await until("released and acquired", () => seen.has("released") && seen.has("acquired"));
        const watched = await mine.lock();
        await until("renewed", () => seen.has("renewed"));
        proxy.refuse();
        await until("suspended", () => seen.has("suspended"));
        await until("lost", () => seen.has("lost"));
        await failure(watched.unlock());
        proxy.restore();
        await until("Redis is back", () => mine.isLocked().then(() => true));
        await runAtLast(mine, () => proxy.blackhole()); // the release then gets no answer
        await until("error", () => seen.has("error"));
        proxy.restore();
        expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(EVENTS.map((name) => [name, OUTSIDE])));
        expect(hold.isHeld).toBe(true);
        await until("it is given back", () => hold.unlock().then(() => true));
      });
    });

    test("of hold.signal", async ({ client, lock, other, wire, surroundings }) => {
      const seen: Promise<string>[] = [];
      await client.scope(async () => {
        await other.lock();
        const forced = await lock.lock();
        forced.signal.addEventListener("abort", () => seen.push(surroundings()));
        await lock.forceUnlock();
        await until("forced", () => forced.signal.aborted);

        await failure(lock.unlock());
        const gone = await lock.lock();
        gone.signal.addEventListener("abort", () => seen.push(surroundings()));
        await wire.wipe();
        await failure(gone.unlock());

        const short = await takeBriefly(lock, 1_500);
        short.signal.addEventListener("abort", () => seen.push(surroundings()));
        await until("expired", () => short.signal.aborted);
        await failure(lock.unlock());
        await other.unlock();
      });
      expect(await Promise.all(seen)).toEqual([OUTSIDE, OUTSIDE, OUTSIDE]);
    });
  });
});
