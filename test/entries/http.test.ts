/** The scopes of HTTP requests and the answers to errors, on the real frameworks. */
import { AsyncResource } from "node:async_hooks";
import { once } from "node:events";
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import express, { type RequestHandler } from "express";
import { describe, expect, onTestFinished, test } from "vitest";
import * as http from "../../src/entries/http.js";
import {
  isLockError,
  LockClient,
  LockLostError,
  LockTimeoutError,
  RedisUnavailableError,
} from "../../src/index.js";
import { forFile, forTest, startRedis, UNHURRIED, until } from "../support/index.js";
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
});

test.each([
  ["behind", "in its scope", undefined],
  ["before", "outside of it", "NOT_OWNER"],
])(
  "lockScope %s a parser that leaves the context of its request, as multer 1 does, has the handler %s",
  async (where, _what, code) => {
    const client = newClient();
    const lock = client.getLock(`parsed ${where}`);
    const pool = new AsyncResource("pool");
    const parser: RequestHandler = (incoming, _response, next) => {
      incoming.resume().once("end", () => pool.runInAsyncScope(next));
    };
    const app = express();
    app.use(...(where === "behind" ? [parser, http.lockScope(client)] : [http.lockScope(client), parser]));
    app.post("/", async (_request, response) => {
      const hold = await lock.lock();
      const error: unknown = await lock.unlock().catch((thrown: unknown) => thrown);
      if (error) await hold.unlock();
      response.json({ code: isLockError(error) ? error.code : undefined });
    });
    const listening = app.listen(0, "127.0.0.1");
    onTestFinished(() => void listening.close());
    await once(listening, "listening");
    expect(await (await post((listening.address() as AddressInfo).port)).json()).toEqual({ code });
  },
);

const TITLES: Record<number, string> = {
  409: "Conflict",
  500: "Internal Server Error",
  503: "Service Unavailable",
};
const copied = (code: string) =>
  Object.assign(new Error("of another copy"), {
    code,
    lockName: "a",
    [Symbol.for("holdfast.LockError")]: true,
  });

test.each([
  { error: new LockTimeoutError("a", 5), status: 409 },
  { error: new RedisUnavailableError("a", new Error("connect ECONNREFUSED 10.1.2.3:6379")), status: 503 },
  { error: new LockLostError("a", "expired", 0), status: 500 },
  { error: copied("UPGRADE_REFUSED"), status: 409 },
  ...["QUORUM", "REPLICAS", "CLIENT_CLOSED"].map((code) => ({ error: copied(code), status: 503 })),
  ...["NOT_OWNER", "UNSUPPORTED", "WRONG_DATA", "A_CODE_TO_COME"].map((code) => ({
    error: copied(code),
    status: 500,
  })),
])("$error.code is answered with $status and a problem without secrets", ({ error, status }) => {
  expect(http.httpStatusOf(error)).toBe(status);
  const problem = http.problemOf(error);
  const { code, lockName } = error;
  const title = TITLES[status];
  expect(problem).toEqual({ type: "about:blank", title, status, detail: expect.any(String), code, lockName });
  expect(JSON.stringify(problem)).not.toMatch(/10\.1\.2\.3|6379/);
});

test("other errors have no status and no problem", () => {
  for (const error of [new Error("a"), { code: "WAIT_TIMEOUT" }, null, undefined])
    expect([http.httpStatusOf(error), http.problemOf(error)]).toEqual([undefined, undefined]);
});

test("what is no LockClient is refused at once", async () => {
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
