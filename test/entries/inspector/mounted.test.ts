/** The inspector behind real servers. */
import { Agent, type ClientRequest, request as httpRequest, type RequestOptions } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { createInspector, type InspectorOptions } from "../../../src/entries/inspector.js";
import { LockClient } from "../../../src/index.js";
import { forFile, startRedis, UNHURRIED, until } from "../../support/index.js";
import { type App, MOUNTS } from "./apps.js";
import { EventReader } from "./event-reader.js";

let app: App | undefined;

const server = await forFile(startRedis());
const client = await forFile(new LockClient(server.connect(), UNHURRIED));
afterEach(() => app?.close());

describe.each(Object.entries(MOUNTS))("%s", (name, { start, path, bare }) => {
  async function open(options: InspectorOptions): Promise<App> {
    app = await start(createInspector(client, { path, ...options }));
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

  test("each cookie of a refusal is sent [B95]", async () => {
    const headers = new Headers();
    for (const cookie of ["a=1", "b=2"]) headers.append("set-cookie", cookie);
    const { url } = await open({ authorize: () => new Response("who?", { status: 401, headers }) });
    expect((await fetch(url)).headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  });

  if (bare !== undefined) {
    test("a root without its slash leads to the one with it, if the framework routes it", async () => {
      const { url } = await open({});
      const response = await fetch(url.slice(0, -1));
      expect(response.status).toBe(bare);
      if (bare === 200) expect(response.url).toBe(url);
    });
  }

  test("the Host header decides what is this machine", async () => {
    const { url } = await open({});
    expect(await statusOf(url, new URL(url).host)).toBe(200);
    expect(await statusOf(url, "rebound.example")).toBe(403);
    expect(await statusOf(url, "no host")).toBe(400);
  });
});

describe("by nodeHandler, the answers", () => {
  test("are compressed for those who accept that, all but the events, and small", async () => {
    app = await MOUNTS["node:http"]?.start(createInspector(client));
    const { url } = app as App;
    let bytes = 0;
    for (const path of ["", "app.js", "app.css", "icon.svg", "api/locks", "nothing"]) {
      const packed = await fetchRaw(url + path, { "accept-encoding": "br, gzip" });
      expect([path, packed.encoding]).toEqual([path, "gzip"]);
      for (const headers of [{}, { "accept-encoding": "gzip;q=0" }]) {
        const plain = await fetchRaw(url + path, headers);
        expect([path, plain.encoding]).toEqual([path, undefined]);
        if (!path.startsWith("api")) expect(gunzipSync(packed.body)).toEqual(plain.body);
      }
      bytes += packed.body.length;
    }
    console.info(`page, script, style and icon: ${bytes} bytes, compressed`);
    expect(bytes).toBeLessThan(20_000);

    const gone = new AbortController();
    const events = await fetch(`${url}api/events`, { signal: gone.signal });
    expect(events.headers.get("content-encoding")).toBeNull();
    gone.abort();
  });
});

describe("by nodeHandler, a body that is not read to its end", () => {
  test.each<[string, InspectorOptions, number]>([
    ["that of a refused request", {}, 403],
    ["one that is too long", { authorize: () => true }, 400],
  ])(
    "%s: its answer arrives, and so does the next one on the connection [B152]",
    async (_what, options, status) => {
      app = await MOUNTS["node:http"]?.start(createInspector(client, options));
      const { url } = app as App;
      const token = /holdfast-csrf" content="([^"]+)"/.exec(await (await fetch(url)).text())?.[1] ?? "";
      const headers = { origin: new URL(url).origin, "x-holdfast-csrf": token };
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (const size of [100_000, 2_000_000, 20_000_000]) {
        const body = "x".repeat(size);
        const sent = await send(`${url}api/unlock`, { method: "POST", headers, agent }, body);
        expect([size, sent]).toEqual([size, status]);
        expect([size, await send(`${url}api/locks`, { agent })]).toEqual([size, 200]);
      }
      agent.destroy();
    },
  );

  test("what is no request for it is answered as such [B153]", async () => {
    app = await MOUNTS["node:http"]?.start(createInspector(client));
    const { url } = app as App;
    expect(await send(url, { method: "TRACE" })).toBe(400);
    const host = `user:secret@${new URL(url).host}`;
    expect(await send(url, { headers: { host } })).toBe(400);
    expect(await send(url, { method: "OPTIONS" })).toBe(405);
  });
});

describe("by nodeHandler, an answer of any handler", () => {
  async function open(handler: (request: Request) => Promise<Response>): Promise<string> {
    app = await MOUNTS["node:http"]?.start(handler);
    return (app as App).url;
  }

  test("that fails on its way is broken off: what has come does not pass for the whole [B154]", async () => {
    const url = await open(async () => {
      const parts = [new Uint8Array(3)];
      const body = new ReadableStream({
        pull(controller) {
          const part = parts.pop();
          if (part) controller.enqueue(part);
          else controller.error(new Error("no more"));
        },
      });
      return new Response(body);
    });
    await expect(fetch(url).then((response) => response.text())).rejects.toThrow(TypeError);
  });

  test("that comes when the one who asked has gone is not waited for [B155]", async () => {
    const asker = new AbortController();
    let isCancelled = false;
    const url = await open(async ({ signal }) => {
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
});

/** Resolves with the status, when the whole answer has come. */
function send(url: string, options: RequestOptions, body?: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { timeout: 20_000, ...options }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode));
    })
      .on("timeout", function (this: ClientRequest) {
        this.destroy(new Error("no answer"));
      })
      .on("error", reject)
      .end(body);
  });
}

/** Sends only these headers, and returns the body as it arrives. */
function fetchRaw(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ encoding: string | undefined; body: Buffer }> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { headers, agent: false }, (response) => {
      expect(response.headers.vary).toContain("accept-encoding");
      const encoding = response.headers["content-encoding"];
      buffer(response).then((body) => resolve({ encoding, body }), reject);
    })
      .on("error", reject)
      .end();
  });
}

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
