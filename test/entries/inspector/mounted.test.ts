/** The inspector behind real web servers. */
import { Agent, type ClientRequest, request as httpRequest, type RequestOptions } from "node:http";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { createInspector, type Inspector, type InspectorOptions } from "../../../src/entries/inspector.js";
import { PATIENCE, until } from "../../support/index.js";
import { type App, MOUNTS } from "./apps.js";
import { allow, open, tokenIn, Viewer } from "./page-requests.js";

let app: App | undefined;
afterEach(() => app?.close());

/** Serves a handler by node:http; resolves with its URL. */
async function serve(handler: Inspector): Promise<string> {
  app = await MOUNTS["node:http"]?.start(handler);
  return (app as App).url;
}

interface Answer {
  readonly status: number | undefined;
  readonly body: Buffer;
}

/** Sends these headers and no others; resolves when the whole answer has come, as it was sent. */
function send(url: string, options: RequestOptions = {}, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { timeout: PATIENCE, agent: false, ...options }, (response) => {
      const { statusCode: status } = response;
      buffer(response).then((body) => resolve({ status, body }), reject);
    })
      .on("timeout", function (this: ClientRequest) {
        this.destroy(new Error("no answer"));
      })
      .on("error", reject)
      .end(body);
  });
}

const statusOf = async (...request: Parameters<typeof send>) => (await send(...request)).status;

describe.each(Object.entries(MOUNTS))("%s", (_, { start, path, bare }) => {
  test("the page comes with its parts and events, and unlocks", async () => {
    const { client, hold } = open();
    app = await start(createInspector(client, { path, authorize: allow, every: 100 }));
    const { url } = app;
    const page = await (await fetch(url)).text();
    for (const [, link = ""] of page.matchAll(/(?:src|href)="([^"#]+)"/g)) {
      const part = await fetch(new URL(link, url));
      expect([link, part.status]).toEqual([link, 200]);
      await part.arrayBuffer();
    }
    const gone = new AbortController();
    const viewer = new Viewer(await fetch(`${url}api/events`, { signal: gone.signal }));
    await viewer.find("locks");
    const held = await hold("stuck");
    await viewer.learns("granted", held);
    const { origin } = new URL(url);
    const headers = { origin, "content-type": "application/json", "x-holdfast-csrf": tokenIn(page) };
    const response = await fetch(`${url}api/unlock`, { method: "POST", headers, body: '{"name":"stuck"}' });
    expect([response.status, await response.json()]).toEqual([200, { unlocked: true }]);
    await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    gone.abort();
  });

  test("without authorize the Host header decides what is this machine", async () => {
    app = await start(createInspector(open().client, { path }));
    const { url } = app;
    for (const [host, status] of [
      [new URL(url).host, 200],
      ["rebound.example", 403],
      ["no host", 400],
    ] as const)
      expect([host, await statusOf(url, { headers: { host } })]).toEqual([host, status]);
    // A root without its slash leads to the one with it, if the framework routes it.
    if (bare === undefined) return;
    const response = await fetch(url.slice(0, -1));
    expect([response.status, response.url]).toEqual([bare, bare === 200 ? url : url.slice(0, -1)]);
  });

  test("each cookie of a refusal is sent [B95]", async () => {
    const headers = new Headers();
    for (const cookie of ["a=1", "b=2"]) headers.append("set-cookie", cookie);
    const authorize = () => new Response("who?", { status: 401, headers });
    app = await start(createInspector(open().client, { path, authorize }));
    expect((await fetch(app.url)).headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  });
});

test("the page is small", async () => {
  const url = await serve(open().inspect());
  let bytes = 0;
  for (const path of ["", "app.js", "app.css", "icon.svg"])
    bytes += gzipSync((await send(url + path)).body).length;
  expect(bytes).toBeLessThan(20_000);
});

test.each<[string, InspectorOptions, number]>([
  ["refused", {}, 403],
  ["too long", { authorize: allow }, 400],
])(
  "nodeHandler answers a request whose body is %s and not read, and the next one on the connection [B152]",
  async (_, options, status) => {
    const url = await serve(open().inspect(options));
    const token = tokenIn(await (await fetch(url)).text());
    const headers = { origin: new URL(url).origin, "x-holdfast-csrf": token };
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const size of [100_000, 2_000_000, 20_000_000]) {
      const sent = statusOf(`${url}api/unlock`, { method: "POST", headers, agent }, "x".repeat(size));
      expect([size, await sent]).toEqual([size, status]);
      expect([size, await statusOf(`${url}api/locks`, { agent })]).toEqual([size, 200]);
    }
    agent.destroy();
  },
);

test("nodeHandler answers what is no request for it as such [B153]", async () => {
  const url = await serve(open().inspect());
  expect(await statusOf(url, { method: "TRACE" })).toBe(400);
  const host = `user:secret@${new URL(url).host}`;
  expect(await statusOf(url, { headers: { host } })).toBe(400);
  expect(await statusOf(url, { method: "OPTIONS" })).toBe(405);
});

test("nodeHandler breaks off an answer that fails on its way: what has come does not pass for the whole [B154]", async () => {
  const url = await serve(async () => {
    const parts = [new Uint8Array(3)];
    const pull = (controller: ReadableStreamDefaultController) => {
      const part = parts.pop();
      if (part) controller.enqueue(part);
      else controller.error(new Error("no more"));
    };
    return new Response(new ReadableStream({ pull }));
  });
  await expect(fetch(url).then((response) => response.text())).rejects.toThrow(TypeError);
});

test("nodeHandler does not wait for an answer that comes when the one who asked has gone [B155]", async () => {
  const asker = new AbortController();
  let isCancelled = false;
  const url = await serve(async ({ signal }) => {
    const gone = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    asker.abort();
    await gone;
    await new Promise((resolve) => setImmediate(resolve));
    const cancel = () => {
      isCancelled = true;
    };
    return new Response(new ReadableStream({ cancel }));
  });
  await expect(fetch(url, { signal: asker.signal })).rejects.toThrow(/abort/);
  await until("its body is cancelled", () => isCancelled);
});
