/** The inspector behind each kind of server, as its users would mount it. */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import express from "express";
// @ts-expect-error: another version, without types
import express4 from "express4";
import fastify from "fastify";
import { Hono } from "hono";
import { type Inspector, nodeHandler } from "../../../src/entries/inspector.js";

export interface App {
  /** The address of the page, with a slash at the end. */
  readonly url: string;
  close(): Promise<void>;
}

export interface Mount {
  /** The inspector's option of that name, for frameworks that leave the whole path in the request. */
  readonly path?: string;
  /** The status for the root without its slash, after redirects. */
  readonly bare?: 200 | 404;
  start(inspector: Inspector): Promise<App>;
}

export const MOUNTS: Readonly<Record<string, Mount>> = {
  "node:http": {
    start: (inspector) => serve((request, response) => void nodeHandler(inspector)(request, response), "/"),
  },
  "Express 4": {
    bare: 200,
    start: (inspector) => serve(expressApp(express4 as typeof express, inspector), "/admin/locks/"),
  },
  "Express 5": { bare: 200, start: (inspector) => serve(expressApp(express, inspector), "/admin/locks/") },
  "Fastify 5": { path: "/locks", bare: 404, start: startFastify },
  "Hono 4": { path: "/locks", bare: 200, start: (inspector) => serve(honoApp(inspector), "/locks/") },
};

/** An Express app with a body parser first, as users often have it. */
function expressApp(framework: typeof express, inspector: Inspector): RequestListener {
  return framework().use(framework.json()).use("/admin/locks", nodeHandler(inspector)) as RequestListener;
}

function honoApp(inspector: Inspector): RequestListener {
  const app = new Hono();
  app.all("/locks", (c) => inspector(c.req.raw));
  app.all("/locks/*", (c) => inspector(c.req.raw));
  const listener = getRequestListener(app.fetch);
  return (request, response) => void listener(request, response);
}

async function startFastify(inspector: Inspector): Promise<App> {
  const app = fastify({ forceCloseConnections: true });
  const handle = nodeHandler(inspector);
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
    scope.all("/locks/*", (request, reply) => {
      reply.hijack();
      return handle(request.raw, reply.raw);
    });
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { url: `${addressOf(app.server)}/locks/`, close: () => app.close() };
}

export async function serve(listener: RequestListener, path: string): Promise<App> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: addressOf(server) + path,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
