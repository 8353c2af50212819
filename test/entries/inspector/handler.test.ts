/** The inspector as a function of Requests: who may look and unlock, and its answers. */
import { describe, expect, test } from "vitest";
import { createInspector, type InspectorOptions } from "../../../src/entries/inspector.js";
import type { LockClient } from "../../../src/index.js";
import { allow, get, HERE, open, tokenOf, unlock } from "./page-requests.js";

const PATHS = ["", "api/locks", "api/events", "app.js", "nothing"];

describe("without authorize", () => {
  test.each([
    ["http://localhost/", {}, 200],
    ["http://127.0.0.1:8080/", {}, 200],
    ["http://127.9.8.7/", {}, 200],
    ["https://[::1]:8443/", {}, 200],
    ["http://0x7f.1/", {}, 200],
    [
      "http://localhost/",
      { host: "localhost:80", "x-forwarded-for": "::1", "x-forwarded-host": "localhost" },
      200,
    ],
    ["http://10.0.0.1/", {}, 403],
    ["http://locks.example/", {}, 403],
    ["http://localhost.example/", {}, 403],
    ["http://127.0.0.1.example/", {}, 403],
    ["http://[::2]/", {}, 403],
    ["http://0.0.0.0/", {}, 403],
    ["http://localhost/", { host: "rebound.example" }, 403],
    ["http://localhost/", { "x-forwarded-host": "locks.example" }, 403],
    ["http://localhost/", { "x-forwarded-for": "203.0.113.9, 127.0.0.1" }, 403],
    ["http://localhost/", { forwarded: "for=203.0.113.9" }, 403],
    ["http://localhost/", { "x-real-ip": "203.0.113.9" }, 403],
    ["http://localhost/", { "cf-connecting-ip": "203.0.113.9", "x-forwarded-for": "127.0.0.1" }, 403],
    ["http://localhost/", { "x-real-ip": "127.0.0.1", "x-forwarded-proto": "https" }, 200],
    ["http://localhost/", { "x-forwarded-proto": "https" }, 403],
    ["http://localhost/", { via: "1.1 proxy" }, 403],
  ])("%s with %j is answered with %i [B216]", async (url, headers, status) => {
    const inspector = open().inspect();
    for (const path of PATHS) {
      const response = await inspector(new Request(url + path, { headers }));
      expect(response.status, path).toBe(status === 200 && path === "nothing" ? 404 : status);
      await response.body?.cancel();
    }
  });

  test("nobody can unlock, and the page does not offer it", async () => {
    const { inspect, hold } = open();
    const held = await hold("read-only");
    expect(await unlock(inspect(), { name: "read-only" })).toEqual([403]);
    await held.unlock();
    expect(await (await get(inspect())).text()).toContain('<meta name="holdfast-unlock" content="no">');
  });
});

describe("with authorize", () => {
  test("authorize is asked for each request with its action, and alone decides", async () => {
    const asked: string[] = [];
    const inspector = open().inspect({
      authorize: (request, action) => {
        asked.push(`${request.method} ${new URL(request.url).pathname} ${action}`);
        return action === "read";
      },
    });
    const far = "https://locks.example/";
    expect((await inspector(new Request(`${far}api/locks`))).status).toBe(200);
    const headers = { origin: "https://locks.example", "x-holdfast-csrf": await tokenOf(inspector) };
    asked.splice(1);
    const denied = await inspector(new Request(`${far}api/unlock`, { method: "POST", body: "{}", headers }));
    expect(denied.status).toBe(403);
    expect(asked).toEqual(["GET /api/locks read", "POST /api/unlock unlock"]);
  });

  test.each([
    ["false", () => false, 403],
    ["a promise of false", async () => false, 403],
    ["what is no boolean", () => "yes" as unknown as boolean, 403],
    ["a Response", () => new Response(null, { status: 401, headers: { "www-authenticate": "Basic" } }), 401],
    ["an error", () => Promise.reject(new Error("secret")), 500],
  ])("%s lets nothing else be answered", async (_, authorize, status) => {
    for (const path of PATHS) {
      const response = await get(open().inspect({ authorize }), path);
      expect(response.status).toBe(status);
      expect(await response.text()).not.toContain("secret");
    }
  });
});

describe("statuses and headers", () => {
  test.each([
    ["GET", "nothing", 404, null],
    ["GET", "api/nothing", 404, null],
    ["GET", "constructor", 404, null],
    ["GET", "api/unlock", 405, "POST"],
    ["POST", "api/locks", 405, "GET, HEAD"],
    ["DELETE", "", 405, "GET, HEAD"],
    ["HEAD", "", 200, null],
  ])("%s /%s is answered with %i", async (method, path, status, allowed) => {
    const response = await open().inspect({ authorize: allow })(new Request(HERE + path, { method }));
    expect([response.status, response.headers.get("allow")]).toEqual([status, allowed]);
  });

  // A body is plain, since who serves a Response may drop its content-encoding, as Next does.
  test("every answer is plain and for this origin alone, and the page has nothing inline or from elsewhere [B51]", async () => {
    const inspector = open().inspect();
    for (const path of ["", "api/locks", "app.js", "app.css", "icon.svg", "nothing"]) {
      const { headers } = await get(inspector, path, { "accept-encoding": "br, gzip" });
      expect([path, headers.get("content-encoding")]).toEqual([path, null]);
      const policy = headers.get("content-security-policy");
      expect(policy).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
      expect(policy).not.toMatch(/unsafe|https?:/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      if (!path.includes(".")) expect(headers.get("cache-control")).toContain("no-store");
    }
    const page = await (await get(inspector)).text();
    expect(page).not.toMatch(/<style|style=|<script(?![^>]*\bsrc=)|\bon[a-z]+=|https?:|(src|href)="\//);
  });

  test("mounted at a path it redirects from there, answers nothing beside it, and takes paths as a browser writes them [B159]", async () => {
    const { inspect } = open();
    for (const [path, written] of [
      ["/admin/locks", "/admin/locks"],
      ["/my löcks", "/my%20l%C3%B6cks"],
    ] as const) {
      const inspector = inspect({ path });
      const bare = await get(inspector, `${path}?a=1`);
      expect([bare.status, bare.headers.get("location")]).toEqual([308, `${written}/?a=1`]);
      for (const below of ["/", "/api/locks"]) expect((await get(inspector, path + below)).status).toBe(200);
      for (const beside of ["/", "/admin/", "/api/locks", "/admin/locksmith/"])
        expect((await get(inspector, beside)).status).toBe(404);
    }
  });

  test.each([
    [undefined, {}, TypeError],
    ["client", { authorise: allow }, TypeError],
    ["client", { authorize: true }, TypeError],
    ["client", { path: "locks" }, TypeError],
    ["client", { path: "/locks?all" }, TypeError],
    ["client", { every: 1 }, RangeError],
    ["client", { limit: 0 }, RangeError],
  ])("wrong arguments throw: %s, %j", (given, options, error) => {
    const client = (given && open().client) as LockClient;
    expect(() => createInspector(client, options as InspectorOptions)).toThrow(error);
  });
});

test("api/locks tells what list tells, no more than the limit, and says so", async () => {
  const { inspect, hold } = open();
  const held = await hold("one");
  const asked = async (options: InspectorOptions) => {
    const response = await get(inspect(options), "api/locks");
    return [await response.json(), response.headers.get("x-holdfast-truncated")];
  };
  const holders = [expect.objectContaining({ ownerId: held.ownerId, count: 1 })];
  const one = expect.objectContaining({ name: "one", kind: "lock", holders });
  expect(await asked({})).toEqual([{ locks: [one] }, "false"]);
  await hold("two");
  expect(await asked({ limit: 1 })).toEqual([{ locks: [expect.anything()] }, "true"]);
});

test("api/locks of a client that is closed is answered with 503 and its code", async () => {
  const { inspect, client } = open();
  await client.close();
  const response = await get(inspect(), "api/locks");
  expect([response.status, await response.json()]).toMatchObject([503, { code: "CLIENT_CLOSED" }]);
});

const GUARDED = { name: "guarded" };

test.each<[string, number, unknown, Record<string, string>?]>([
  ["no token", 403, GUARDED, { "x-holdfast-csrf": "" }],
  ["another token", 403, GUARDED, { "x-holdfast-csrf": "A".repeat(32) }],
  ["another origin", 403, GUARDED, { origin: "http://evil.example" }],
  ["no origin", 403, GUARDED, { origin: "" }],
  ["another site, by the browser's word", 403, GUARDED, { "sec-fetch-site": "cross-site" }],
  ["no JSON", 400, "name"],
  ["no name", 400, {}],
  ["a name that is none", 400, { name: 7 }],
  ["an empty name", 400, { name: "" }],
  ["more than a name", 400, { name: "x".repeat(100_000) }],
  ["owners that are none", 400, { name: "guarded", ownerIds: [1] }],
  ["other holders", 409, { name: "guarded", ownerIds: ["somebody"] }],
])(
  "api/unlock with %s is answered with %i, and the holder keeps its lock",
  async (_, status, body, headers) => {
    const { inspect, hold, other } = open();
    const held = await hold("guarded");
    expect(await unlock(inspect({ authorize: allow }), body, headers)).toEqual([status]);
    expect((await other.inspect("guarded"))?.holders[0]?.ownerId).toBe(held.ownerId);
  },
);

test.each([
  ["the body's content type is another", { "content-type": "text/plain;charset=UTF-8" }],
  ["a proxy ends TLS", { origin: "https://localhost:3000", "sec-fetch-site": "same-origin" }],
  ["a proxy puts in a host of its own", { origin: "https://locks.example", "sec-fetch-site": "same-origin" }],
])("api/unlock with the token is answered although %s [B218]", async (_, headers) => {
  const answer = await unlock(open().inspect({ authorize: allow }), { name: "free" }, headers);
  expect(answer).toEqual([200, { unlocked: false }]);
});

test.each([
  ["lock", (by: LockClient) => by.getLock("stuck")],
  ["fair", (by: LockClient) => by.getFairLock("stuck")],
  ["fenced", (by: LockClient) => by.getFencedLock("stuck")],
  ["read", (by: LockClient) => by.getReadWriteLock("stuck").readLock()],
  ["write", (by: LockClient) => by.getReadWriteLock("stuck").writeLock()],
])(
  "api/unlock takes a lock of kind %s from its holder, lets in who waits, and is told to the audit",
  async (kind, lockOf) => {
    const { client, other, inspect, settle } = open();
    const told: unknown[] = [];
    const inspector = inspect({
      authorize: allow,
      onUnlock: ({ name, lock, request }) => {
        told.push([name, lock.holders.map(({ ownerId }) => ownerId), request.method]);
      },
    });
    const held = await lockOf(other).lock();
    const waiting = kind === "read" ? undefined : lockOf(client).lock();
    await settle();
    const ownerIds = [held.ownerId];
    expect(await unlock(inspector, { name: "stuck", ownerIds })).toEqual([200, { unlocked: true }]);
    expect(told).toEqual([["stuck", ownerIds, "POST"]]);
    await (await waiting)?.unlock();
    await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  },
);

test("api/unlock of a writer that also reads takes its write side, and then its read side", async () => {
  const { client, other, inspect } = open();
  const lock = other.getReadWriteLock("both sides");
  await lock.readLock().lock({ owner: await lock.writeLock().lock() });
  const inspector = inspect({ authorize: allow });
  await unlock(inspector, { name: "both sides" });
  expect(await client.inspect("both sides")).toMatchObject({ mode: "read" });
  await unlock(inspector, { name: "both sides" });
  expect(await client.inspect("both sides")).toBeNull();
});
