/**
 * One small service for each framework, as its users would write it. `http` is what `holdfast/http` exports;
 * `handle(body)` answers POST /, and its result is the answer.
 */
import { once } from "node:events";
import express5 from "express";
import express4 from "express4";
import fastify from "fastify";

/** @type {Record<string, (http: any, client: any, handle: (body: any) => Promise<unknown>) => Promise<{ port: number, close: () => Promise<void> }>>} */
export const APPS = {
  "Express 4": (http, client, handle) => startExpress(express4, http, client, handle),
  "Express 5": (http, client, handle) => startExpress(express5, http, client, handle),
  "Fastify 5": startFastify,
};

async function startExpress(express, { lockScope, problemOf }, client, handle) {
  const app = express();
  app.use(lockScope(client), express.json());
  app.post("/", (request, response, next) => {
    handle(request.body).then((answer) => response.json(answer), next);
  });
  app.use((error, _request, response, next) => {
    const problem = problemOf(error);
    if (problem) response.status(problem.status).type("application/problem+json").send(problem);
    else next(error);
  });
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: server.address().port, close: () => new Promise((resolve) => server.close(resolve)) };
}

async function startFastify({ lockPlugin, problemOf }, client, handle) {
  const app = fastify();
  await app.register(lockPlugin, { client });
  app.setErrorHandler((error, _request, reply) => {
    const problem = problemOf(error);
    if (problem) reply.code(problem.status).type("application/problem+json").send(problem);
    else reply.send(error);
  });
  app.post("/", async (request) => {
    if (app.locks !== client) throw new Error("fastify.locks is another client");
    return handle(request.body);
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { port: app.server.address().port, close: () => app.close() };
}
