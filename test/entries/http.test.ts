/** The scopes of HTTP requests and the answers to errors, on the real frameworks. */
import { once } from "node:events";
import { request } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import * as http from "../../src/entries/http.js";
import {
  isLockError,
  LockClient,
  LockLostError,
  LockTimeoutError,
  RedisUnavailableError,
} from "../../src/index.js";
import { forFile, forTest, startRedis, startWorker, UNHURRIED, until } from "../support/index.js";
// @ts-expect-error: plain JavaScript
import { APPS } from "./http-apps.mjs";

type Handle = (body: { task: string }) => Promise<unknown>;
type Start = (with_: typeof http, client: LockClient, handle: Handle) => Promise<App>;
interface App {
  readonly port: number;
  close(): Promise<void>;
}
const apps = Object.entries(APPS as Record<string, Start>).map(([name, start]) => ({ name, start }));

const server = await forFile(startRedis());

function newClient(): LockClient {
  return forTest(new LockClient(server.connect(), UNHURRIED));
}

function post(port: number, body: object = {}): Promise<Response> {
  const headers = { "content-type": "application/json", connection: "close" };
  return fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body: JSON.stringify(body) });
}

describe.each(apps)("$name", ({ name, start }) => {
  async function serve(client: LockClient, handle: Handle): Promise<number> {
    const app = await start(http, client, handle);
    onTestFinished(() => app.close());
    return app.port;
  }

  test("a request re-enters its own locks, has to wait for another's, and is no owner when its response has closed", async () => {
    const client = newClient();
    const lock = client.getLock(`${name}: scope`);
    let late: Promise<unknown> = Promise.resolve();
    const port = await serve(client, async ({ task }) => {
      if (task === "rival") return { got: (await lock.tryLock()) !== null };
      await lock.lock();
      await lock.lock();
      const rival = await post(port, { task: "rival" }).then((response) => response.json());
      const count = await lock.getHoldCount();
      await lock.unlock();
      await lock.unlock();
      const closed = until("the scope has ended", async () => {
        const error = await lock.unlock().catch((caught: unknown) => caught);
        return /outside a scope/.test(String(error)) && error;
      });
      late = closed;
      return { count, rival };
    });
    expect(await post(port, { task: "first" }).then((response) => response.json())).toEqual({
      count: 2,
      rival: { got: false },
    });
    expect(isLockError(await late, "NOT_OWNER")).toBe(true);
  });

  test("the scope ends too when the one who asked has gone", async () => {
    const client = newClient();
    const lock = client.getLock(`${name}: gone`);
    let ended: Promise<unknown> = Promise.resolve();
    const port = await serve(client, () => {
      ended = until("the scope has ended", async () =>
        /outside a scope/.test(String(await lock.unlock().catch((error: unknown) => error))),
      );
      asking.destroy();
      return ended;
    });
    const asking = request({ port, method: "POST" }).end();
    await once(asking, "error");
    expect(await ended).toBe(true);
  });

  test("a lock that is in use is a conflict, a closed client a service that is away, other errors the framework's", async () => {
    const client = newClient();
    const lock = client.getLock(`${name}: problem`);
    const port = await serve(client, async ({ task }) => {
      if (task === "fail") throw new Error("no lock's");
      return await lock.run(() => ({}), { wait: 0 });
    });
    const hold = await lock.lock();
    const conflict = await post(port);
    expect(conflict.status).toBe(409);
    expect(conflict.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(await conflict.json()).toMatchObject({ code: "WAIT_TIMEOUT", lockName: lock.name });
    await hold.unlock();
    const failed = await post(port, { task: "fail" });
    expect([failed.status, /json.*WAIT_TIMEOUT/.test(await failed.text())]).toEqual([500, false]);
    await client.close();
    const away = await post(port);
    expect(away.status).toBe(503);
    expect(await away.json()).toMatchObject({ code: "CLIENT_CLOSED" });
  });

  test("two instances under load sell each piece once, and leave nothing locked when they are terminated", async () => {
    await server.call("FLUSHALL");
    await server.call("SET", "left", 30);
    const file = new URL("http-worker.mjs", import.meta.url);
    const start = async () => forTest(await startWorker(file, { args: [name, String(server.port)] }));
    const workers = await Promise.all([start(), start()]);
    const ports = await Promise.all(workers.map((worker) => worker.request<number>("port")));
    const buyers = Array.from({ length: 40 }, (_, n) => post(ports[n % 2] as number));
    const sales = await Promise.all(
      buyers.map(async (buyer) => (await buyer).json() as Promise<{ sold: boolean }>),
    );
    expect(sales.filter(({ sold }) => sold)).toHaveLength(30);
    expect(await server.call("GET", "left")).toBe("0");

    await server.call("SET", "left", 1_000);
    let sold = 0;
    const crowd = Array.from({ length: 8 }, async (_, n) => {
      // Until the instance accepts no more requests.
      for (;;) {
        const answer = await post(ports[n % 2] as number).catch(() => undefined);
        if (!answer?.ok) return;
        if (((await answer.json()) as { sold: boolean }).sold) sold += 1;
      }
    });
    await until("both are at it", () => sold > 8);
    expect(await Promise.all(workers.map((worker) => worker.kill("SIGTERM")))).toEqual([
      { code: 0, signal: null },
      { code: 0, signal: null },
    ]);
    await Promise.all(crowd);
    // Each confirmed sale was made; a sale whose answer was cut off may have been made, too.
    expect(1_000 - Number(await server.call("GET", "left"))).toBeGreaterThanOrEqual(sold);
    expect(await newClient().inspect("stock")).toBeNull();
  });
});

describe("the answer to a client for each error", () => {
  const secret = new RedisUnavailableError("a", new Error("connect ECONNREFUSED 10.1.2.3:6379"));

  test.each([
    { error: new LockTimeoutError("a", 5), status: 409, title: "Conflict" },
    { error: secret, status: 503, title: "Service Unavailable" },
    { error: new LockLostError("a", "expired", 0), status: 500, title: "Internal Server Error" },
  ])("$error.code: $status", ({ error, status, title }) => {
    expect(http.httpStatusOf(error)).toBe(status);
    const { code, lockName } = error;
    const problem = http.problemOf(error);
    expect(problem).toEqual({
      type: "about:blank",
      title,
      status,
      detail: expect.any(String),
      code,
      lockName,
    });
    expect(JSON.stringify(problem)).not.toMatch(/10\.1\.2\.3|6379/);
  });

  test.each([
    ["UPGRADE_REFUSED", 409],
    ["QUORUM", 503],
    ["REPLICAS", 503],
    ["CLIENT_CLOSED", 503],
    ["NOT_OWNER", 500],
    ["UNSUPPORTED", 500],
    ["WRONG_DATA", 500],
    ["A_CODE_TO_COME", 500],
  ])("%s of another copy of the library: %i", (code, status) => {
    const error = Object.assign(new Error("of another copy"), {
      code,
      lockName: "a",
      [Symbol.for("holdfast.LockError")]: true,
    });
    expect(http.httpStatusOf(error)).toBe(status);
    expect(http.problemOf(error)).toMatchObject({ status, code, lockName: "a" });
  });

  test.each([[new Error("a")], [{ code: "WAIT_TIMEOUT" }], [null], [undefined]])(
    "%s is none of ours",
    (error) => {
      expect(http.httpStatusOf(error)).toBeUndefined();
      expect(http.problemOf(error)).toBeUndefined();
    },
  );
});

test("a value that is no LockClient is refused at once", async () => {
  expect(() => http.lockScope({} as LockClient)).toThrow(TypeError);
  const [, , fastify] = apps;
  await expect(fastify?.start(http, {} as LockClient, async () => {})).rejects.toThrow(
    /lockPlugin.*LockClient/,
  );
});

test("what throws behind lockScope throws as without it, and is called once [B150]", async () => {
  const calls: unknown[] = [];
  const next = (error?: unknown) => {
    calls.push(error);
    throw new Error("behind");
  };
  expect(() => http.lockScope(newClient())({}, { once: () => {} }, next)).toThrow("behind");
  await new Promise((resolve) => setImmediate(resolve));
  expect(calls).toEqual([undefined]);
});
