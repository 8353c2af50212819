/** The inspector behind real servers. */
import { request as httpRequest } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createInspector, type InspectorOptions } from "../../src/entries/inspector.js";
import { LockClient } from "../../src/index.js";
import { type RedisServer, startRedis, UNHURRIED } from "../support/index.js";
import { APPS, type App } from "./apps.js";
import { EventReader } from "./event-reader.js";

let server: RedisServer;
let client: LockClient;
let app: App | undefined;

beforeAll(async () => {
  server = await startRedis();
  client = new LockClient(server.connect(), UNHURRIED);
});
afterEach(() => app?.close());
afterAll(async () => {
  await client?.close({ timeout: 0 });
  await server?.stop();
});

describe.each(Object.entries(APPS))("%s", (name, start) => {
  async function open(options: InspectorOptions): Promise<App> {
    app = await start(createInspector(client, options));
    return app;
  }

  test("the page and its parts, its events, and an unlock", async () => {
    const { url } = await open({ authorize: () => true, every: 100 });
    const page = await (await fetch(url)).text();
    for (const [, link = ""] of page.matchAll(/(?:src|href)="([^"#]+)"/g)) {
      const part = await fetch(new URL(link, url));
      expect([link, part.status]).toEqual([link, 200]);
      await part.arrayBuffer();
    }
    const gone = new AbortController();
    const events = new EventReader(await fetch(`${url}api/events`, { signal: gone.signal }));
    await events.find("locks");
    const hold = await client.getLock(name).lock();
    await events.find("history", ([entry]) => entry?.name === name);

    const token = /holdfast-csrf" content="([^"]+)"/.exec(page)?.[1] ?? "";
    const headers = {
      origin: new URL(url).origin,
      "content-type": "application/json",
      "x-holdfast-csrf": token,
    };
    const body = JSON.stringify({ name });
    const response = await fetch(`${url}api/unlock`, { method: "POST", headers, body });
    expect([response.status, await response.json()]).toEqual([200, { unlocked: true }]);
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    gone.abort();
  });

  test("a root without its slash leads to the one with it", async () => {
    const path = name === "node:http" ? undefined : "/locks";
    const { url } = await open(name === "Fastify 5" ? { path } : {});
    if (!path) return;
    const response = await fetch(url.slice(0, -1));
    if (name === "Fastify 5")
      expect(response.status).toBe(404); // no route of Fastify's
    else expect([response.url, response.status]).toEqual([url, 200]);
  });

  test("the Host header decides what is this machine", async () => {
    const { url } = await open({});
    expect(await statusOf(url, new URL(url).host)).toBe(200);
    expect(await statusOf(url, "rebound.example")).toBe(403);
    expect(await statusOf(url, "no host")).toBe(400);
  });
});

function statusOf(url: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { headers: { host }, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });
}
