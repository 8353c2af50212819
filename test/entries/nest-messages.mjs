/**
 * Nest without HTTP, as its users would write it, except that the decorators are called by hand: a microservice on TCP,
 * and a gateway of Socket.IO. `nestjs` is what `holdfast/nestjs` exports.
 */
import "reflect-metadata";
import { Controller, UseFilters } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ClientProxyFactory, EventPattern, MessagePattern, Transport } from "@nestjs/microservices";
import { SubscribeMessage, WebSocketGateway } from "@nestjs/websockets";
import { lastValueFrom } from "rxjs";
import { io } from "socket.io-client";
import { decorateMethod as method } from "./nest-app.mjs";

/** A logger that keeps errors, each with the place that logged it. */
export function listening(errors) {
  const log = () => {};
  return { log, warn: log, error: (error, ...rest) => errors.push([rest.at(-1), error]) };
}

const sell = async () => "sold";

/**
 * `ask(pattern)` resolves with the answer to a message, or rejects with its error; `tell(pattern)` sends an event.
 * @public to the tests, which load this file late
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
    {
      transport: Transport.TCP,
      options: { host: "127.0.0.1", port: 0 },
      logger: listening(errors),
    },
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

/**
 * `ask(event)` resolves with what the gateway acknowledges, or rejects with its exception.
 * @public to the tests, which load this file late
 */
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
