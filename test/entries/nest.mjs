/**
 * Applications in Nest, as its users would write them, except that the decorators are called by hand. `nestjs` is what
 * `holdfast/nestjs` exports.
 */
import "reflect-metadata";
import { Controller, Get, Post, Res, UseFilters } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ClientProxyFactory, EventPattern, MessagePattern, Transport } from "@nestjs/microservices";
import { SubscribeMessage, WebSocketGateway } from "@nestjs/websockets";
import fastify from "fastify";
import { lastValueFrom } from "rxjs";
import { io } from "socket.io-client";

/** Applies decorators as the compiler would: from the last to the first. */
function method(Class, key, ...decorators) {
  const { prototype } = Class;
  const before = Object.getOwnPropertyDescriptor(prototype, key);
  const after = decorators.reduceRight((given, decorate) => decorate(prototype, key, given) ?? given, before);
  Object.defineProperty(prototype, key, after);
}

/** `locks`: the imported LockModule; `sell(client)`: what a sale does under the lock "stock". */
export async function startShop({ Locked, InjectLockClient, LockExceptionFilter }, locks, sell) {
  class Shop {
    constructor(client) {
      this.client = client;
    }
    async sell() {
      return sell(this.client);
    }
    async try() {
      return {};
    }
  }
  InjectLockClient()(Shop, undefined, 0);
  method(
    Shop,
    "sell",
    Locked(() => "stock", { wait: 60_000 }),
    Post("/"),
  );
  method(Shop, "try", Post("/try"), Locked("stock", { wait: 0 }));
  Controller()(Shop);

  class AppModule {}
  const app = await NestFactory.create(
    { module: AppModule, imports: [locks], controllers: [Shop] },
    { logger: false },
  );
  app.useGlobalFilters(new LockExceptionFilter());
  await app.listen(0, "127.0.0.1");
  return { app, shop: app.get(Shop), port: app.getHttpServer().address().port };
}

/** A module that provides what `forRootAsync` injects. */
export function configured(url) {
  class ConfigModule {}
  return { module: ConfigModule, providers: [{ provide: "url", useValue: url }], exports: ["url"] };
}

/** A logger that keeps errors, each with the place that logged it. */
function listening(errors) {
  const log = () => {};
  return { log, warn: log, error: (error, ...rest) => errors.push([rest.at(-1), error]) };
}

const sell = async () => "sold";

/**
 * A microservice on TCP: `ask(pattern)` resolves with the answer to a message, or rejects with its error, and
 * `tell(pattern)` sends an event.
 */
export async function startService({ Locked, LockExceptionFilter }, locks) {
  class Desk {}
  Object.assign(Desk.prototype, { sell, note: sell });
  method(Desk, "sell", MessagePattern("sell"), Locked("stock", { wait: 0 }));
  method(Desk, "note", EventPattern("note"), Locked("stock", { wait: 0 }));
  Controller()(Desk);
  class AppModule {}
  const errors = [];
  const app = await NestFactory.createMicroservice(
    { module: AppModule, imports: [locks], controllers: [Desk] },
    { transport: Transport.TCP, options: { host: "127.0.0.1", port: 0 }, logger: listening(errors) },
  );
  app.useGlobalFilters(new LockExceptionFilter());
  await app.listen();
  const { port } = app.unwrap().address();
  const options = { host: "127.0.0.1", port };
  const proxy = ClientProxyFactory.create({ transport: Transport.TCP, options });
  return {
    errors,
    ask: (pattern) => lastValueFrom(proxy.send(pattern, {})),
    tell: (pattern) => lastValueFrom(proxy.emit(pattern, {}), { defaultValue: undefined }),
    async close() {
      proxy.close();
      await app.close();
    },
  };
}

/** A gateway of Socket.IO: `ask(event)` resolves with what it acknowledges, or rejects with its exception. */
export async function startGateway({ Locked, LockExceptionFilter }, locks) {
  class Gateway {}
  Object.assign(Gateway.prototype, { sell });
  method(Gateway, "sell", SubscribeMessage("sell"), Locked("stock", { wait: 0 }));
  WebSocketGateway()(Gateway);
  UseFilters(new LockExceptionFilter())(Gateway);
  class AppModule {}
  const errors = [];
  const app = await NestFactory.create(
    { module: AppModule, imports: [locks], providers: [Gateway] },
    { logger: listening(errors) },
  );
  await app.listen(0, "127.0.0.1");
  const socket = io(await app.getUrl(), { transports: ["websocket"] });
  return {
    errors,
    ask: (event) =>
      new Promise((resolve, reject) => {
        socket.once("exception", reject);
        socket.emit(event, {}, resolve);
      }),
    async close() {
      socket.close();
      await app.close();
    },
  };
}

/** What has been written to Node's response when the route throws. */
const ROUTES = {
  before: () => {},
  while: (raw) => raw.writeHead(200).write("part"),
  after: (raw) => raw.writeHead(200).end("all"),
};

/** Routes that throw a given error before, while and after they answer. `errors` were logged, each with its place. */
export async function startExpress({ LockExceptionFilter }, error) {
  class Desk {}
  for (const [path, write] of Object.entries(ROUTES)) {
    Desk.prototype[path] = async (response) => {
      write(response);
      throw error();
    };
    Res()(Desk.prototype, path, 0);
    method(Desk, path, Get(`/${path}`));
  }
  Controller()(Desk);
  class AppModule {}
  const errors = [];
  const app = await NestFactory.create(
    { module: AppModule, controllers: [Desk] },
    { logger: listening(errors), forceCloseConnections: true },
  );
  app.useGlobalFilters(new LockExceptionFilter());
  await app.listen(0, "127.0.0.1");
  return { errors, url: await app.getUrl(), close: () => app.close() };
}

/** The same routes in Fastify without Nest, which call the filter themselves. */
export async function startFastify({ LockExceptionFilter }, error) {
  const filter = new LockExceptionFilter();
  const app = fastify({ forceCloseConnections: true });
  for (const [path, write] of Object.entries(ROUTES)) {
    app.get(`/${path}`, (_request, reply) => {
      write(reply.raw);
      const host = { getType: () => "http", switchToHttp: () => ({ getResponse: () => reply }) };
      filter.catch(error(), host);
    });
  }
  return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() };
}
