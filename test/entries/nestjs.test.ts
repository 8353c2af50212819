/** The module for Nest, in real applications. */
import { type DynamicModule, Logger } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { expect, onTestFinished, test, vi } from "vitest";
import * as nestjs from "../../src/entries/nestjs.js";
import { LockClient, LockLostError, LockTimeoutError } from "../../src/index.js";
import { forFile, forTest, PATIENCE, startRedis, UNHURRIED, until } from "../support/index.js";
// @ts-expect-error: plain JavaScript
import { configured, startExpress, startFastify, startGateway, startService, startShop } from "./nest.mjs";

interface Shop {
  client: LockClient;
  sell(): Promise<unknown>;
}
interface Started {
  app: { close(): Promise<void>; get<T>(token: new (...args: never[]) => T): T };
  shop: Shop;
  port: number;
}
interface Logging {
  /** The logged errors, each with the place that logged it. */
  errors: [where: string, error: unknown][];
  close(): Promise<void>;
}
interface Messages extends Logging {
  ask(pattern: string): Promise<unknown>;
  tell(pattern: string): Promise<unknown>;
}
type Sell = (client: LockClient) => Promise<unknown>;
type StartMessages = (lib: typeof nestjs, locks: object) => Promise<Messages>;
type StartResponding = (lib: typeof nestjs, error: () => Error) => Promise<Logging & { url: string }>;
interface Apps extends Record<"startService" | "startGateway", StartMessages> {
  startShop(lib: typeof nestjs, locks: object, sell: Sell): Promise<Started>;
  configured(url: string): never;
  startExpress: StartResponding;
  startFastify: StartResponding;
}
const apps = { configured, startExpress, startFastify, startGateway, startService, startShop } as Apps;

const server = await forFile(startRedis());

async function start(locks: object, sell: Sell = async () => ({})): Promise<Started> {
  const started = await apps.startShop(nestjs, locks, sell);
  onTestFinished(() => started.app.close());
  return started;
}

const LOCKS = nestjs.LockModule.forRoot({ redis: server.url, ...UNHURRIED });

/** The lock of the routes, held by another client. */
const rivalHold = () => forTest(new LockClient(server.connect(), UNHURRIED)).getLock("stock").lock();

function post(port: number, path = ""): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/${path}`, { method: "POST", headers: { connection: "close" } });
}

test("a decorated route runs under its lock, whichever decorator stands first, and a lock in use is a conflict", async () => {
  let left = 15;
  const { port, shop } = await start(LOCKS, async (client) => {
    const read = left;
    expect(await client.getLock("stock").isLocked()).toBe(true);
    left = Math.max(0, read - 1);
    return { sold: read > 0 };
  });
  const buy = async () => (await post(port)).json() as Promise<{ sold: boolean }>;
  const sales = await Promise.all(Array.from({ length: 20 }, buy));
  expect([sales.filter(({ sold }) => sold).length, left]).toEqual([15, 0]);
  expect((await post(port, "try")).status).toBe(201);
  const hold = await rivalHold();
  const conflict = await post(port, "try");
  expect(conflict.status).toBe(409);
  expect(conflict.headers.get("content-type")).toMatch(/^application\/problem\+json/);
  expect(await conflict.json()).toMatchObject({ code: "WAIT_TIMEOUT", lockName: "stock" });
  await hold.unlock();
  const { client } = shop;
  const made = Object.create(Object.getPrototypeOf(shop)) as Shop;
  await expect(made.sell()).rejects.toThrow(/Nest has not made this Shop/);
  expect(await client.getLock("stock").isLocked()).toBe(false);
});

test("applications in one process do not meet; the client ends with its application, and a given connection stays open", async () => {
  const redis = server.connect();
  const first = await start(
    nestjs.LockModule.forRoot({ redis, isGlobal: true, prefix: "one", ...UNHURRIED }),
  );
  const second = await start(
    nestjs.LockModule.forRootAsync({
      imports: [apps.configured(server.url)],
      inject: ["url"],
      useFactory: (url: string) => ({ redis: url, prefix: "two", ...UNHURRIED }),
    }),
  );
  expect(first.app.get(LockClient)).toBe(first.shop.client);
  expect(second.app.get(LockClient)).not.toBe(first.shop.client);
  const held = await first.shop.client.getLock("stock").lock();
  await second.shop.sell();
  await held.unlock();
  await first.app.close();
  await expect(first.shop.sell()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
  await second.shop.sell();
  expect(await redis.ping()).toBe("PONG");
});

test.each(["forRoot", "forRootAsync"] as const)(
  "modules of %s that differ by values alone have a client each, also where Nest compares modules by their text as Nest 10 does [B256]",
  async (how) => {
    const moduleWith = (label: string) => {
      const options = { redis: server.url, label, ...UNHURRIED };
      return how === "forRoot"
        ? nestjs.LockModule.forRoot(options)
        : nestjs.LockModule.forRootAsync({ useFactory: () => options });
    };
    const labels = ["orders", "stock"];
    const parts = labels.map((label) => ({
      module: class {},
      imports: [moduleWith(label)],
      providers: [{ provide: label, useFactory: (client: LockClient) => client, inject: [LockClient] }],
    }));
    class AppModule {}
    const app = await NestFactory.createApplicationContext(
      { module: AppModule, imports: parts },
      { logger: false, moduleIdGeneratorAlgorithm: "deep-hash" },
    );
    onTestFinished(() => app.close());
    const clientOf = (label: string) => app.get<LockClient>(label, { strict: false });
    expect(labels.map((label) => clientOf(label).label)).toEqual(labels);
  },
);

test.each([true, false])(
  "a job at hand ends its work in the last hook of its module, and the client closes behind it: global %s",
  async (isGlobal) => {
    const locks = nestjs.LockModule.forRoot({ redis: server.url, isGlobal, ...UNHURRIED });
    const ended: string[] = [];
    const job = (name: string) => {
      const work = () => new Promise((resolve) => setTimeout(resolve, 20));
      const useFactory = (client: LockClient) => ({
        onApplicationShutdown: async () => {
          await client.getLock(name).run(work);
          ended.push(name);
        },
      });
      return { provide: name, inject: [LockClient], useFactory };
    };
    const moduleOf = (name: string, ...imports: object[]) => {
      return { module: class {}, imports: [locks, ...imports], providers: [job(name)] } as DynamicModule;
    };
    const root = moduleOf("root", moduleOf("middle", moduleOf("deep")));
    const app = await NestFactory.createApplicationContext(root, { logger: false });
    const client = app.get(LockClient);
    await app.close();
    expect(ended.sort()).toEqual(["deep", "middle", "root"]);
    await expect(client.getLock("root").lock()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
  },
);

/** An application without HTTP, and a rival that has its lock. */
async function startBehindRival(startMessages: StartMessages) {
  const started = await startMessages(nestjs, LOCKS);
  onTestFinished(() => started.close());
  expect(await started.ask("sell")).toBe("sold");
  return { ...started, hold: await rivalHold() };
}

test("the answer of a microservice to a lock in use is an error, and an event that meets one is told to the log [B104]", async () => {
  const { ask, tell, errors, hold } = await startBehindRival(apps.startService);
  const logged = ["RpcExceptionsHandler", expect.objectContaining({ code: "WAIT_TIMEOUT" })];
  await expect(ask("sell")).rejects.toEqual({ status: "error", message: "Internal server error" });
  expect(errors).toEqual([logged]);
  await tell("note");
  await until("it is logged", () => errors.length > 1);
  expect(errors).toEqual([logged, logged]);
  await hold.unlock();
  expect(await ask("sell")).toBe("sold");
});

test("a gateway tells its client of a lock in use by an exception, and the log [B104]", async () => {
  const { ask, errors, hold } = await startBehindRival(apps.startGateway);
  await expect(ask("sell")).rejects.toMatchObject({ status: 409, code: "WAIT_TIMEOUT", lockName: "stock" });
  expect(errors).toEqual([["LockExceptionFilter", expect.objectContaining({ code: "WAIT_TIMEOUT" })]]);
  await hold.unlock();
  expect(await ask("sell")).toBe("sold");
});

const lost = () => new LockLostError("stock", "expired", Date.now());
const busy = () => new LockTimeoutError("stock", 0);

test("the log gets an error that is answered with 500, and none that is a conflict [B179]", async () => {
  const service = await apps.startExpress(nestjs, lost);
  onTestFinished(() => service.close());
  expect((await fetch(`${service.url}/before`)).status).toBe(500);
  expect(service.errors).toEqual([["LockExceptionFilter", expect.objectContaining({ code: "LOCK_LOST" })]]);
  const conflicts = await apps.startExpress(nestjs, busy);
  onTestFinished(() => conflicts.close());
  expect((await fetch(`${conflicts.url}/before`)).status).toBe(409);
  expect(conflicts.errors).toEqual([]);
});

test.each([
  ["Express", apps.startExpress],
  ["Fastify", apps.startFastify],
])(
  "on %s a response that has begun when a lock fails is ended, one that has ended stays as it is, and the log has the error [B179]",
  async (_what, launch) => {
    const logged = vi.spyOn(Logger.prototype, "error").mockReturnValue();
    onTestFinished(() => logged.mockRestore());
    const service = await launch(nestjs, busy);
    onTestFinished(() => service.close());
    for (const [path, text] of [
      ["while", "part"],
      ["after", "all"],
    ]) {
      const response = await fetch(`${service.url}/${path}`, { signal: AbortSignal.timeout(PATIENCE) });
      expect([response.status, await response.text()]).toEqual([200, text]);
      await until("it is logged", () => logged.mock.calls.length > 0);
      expect(logged.mock.calls.splice(0)).toEqual([[expect.objectContaining({ code: "WAIT_TIMEOUT" })]]);
    }
    expect((await fetch(`${service.url}/before`)).status).toBe(409);
    expect(logged.mock.calls).toEqual([]);
  },
);
