/**
 * An application whose routes throw a given error before, while and after they answer, in Nest on Express; the
 * decorators are called by hand. And the same routes in Fastify without Nest, which call the filter themselves.
 * `nestjs` is what `holdfast/nestjs` exports.
 */
import "reflect-metadata";
import { Controller, Get, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import fastify from "fastify";
import { decorateMethod } from "./nest-app.mjs";
import { listening } from "./nest-messages.mjs";

/** What has been written to Node's response when the route throws. */
const ROUTES = {
  before: () => {},
  while: (raw) => raw.writeHead(200).write("part"),
  after: (raw) => raw.writeHead(200).end("all"),
};

/**
 * `errors`: what was logged, each with the place that logged it.
 * @public to the tests, which load this file late
 */
export async function startExpress({ LockExceptionFilter }, error) {
  class Desk {}
  for (const [path, write] of Object.entries(ROUTES)) {
    Desk.prototype[path] = async (response) => {
      write(response);
      throw error();
    };
    Res()(Desk.prototype, path, 0);
    decorateMethod(Desk, path, Get(`/${path}`));
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

/** @public to the tests, which load this file late */
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
