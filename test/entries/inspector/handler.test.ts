/** The inspector as a function of Requests: who may look and unlock, and its answers. */
import { describe, expect, onTestFinished, test } from "vitest";
import { History } from "../../../src/entries/inspector/history.js";
import { createInspector, type Inspector, type InspectorOptions } from "../../../src/entries/inspector.js";
import { type Hold, LockClient } from "../../../src/index.js";
import {
  countCommands,
  forFile,
  PATIENCE,
  recordWarnings,
  startRedis,
  UNHURRIED,
  until,
} from "../../support/index.js";
import { EventReader } from "./event-reader.js";

const HERE = "http://localhost:3000/";

const server = await forFile(startRedis());
const client = await forFile(new LockClient(server.connect(), UNHURRIED));
/** A client in place of another process. */
const other = await forFile(new LockClient(server.connect(), UNHURRIED));
const inspect = (options?: InspectorOptions): Inspector => createInspector(client, options);
const allow = () => true;

function get(inspector: Inspector, path = "", headers: Record<string, string> = {}): Promise<Response> {
  return inspector(new Request(new URL(path, HERE), { headers }));
}

async function tokenOf(inspector: Inspector): Promise<string> {
  const page = await (await get(inspector)).text();
  return /<meta name="holdfast-csrf" content="([^"]+)">/.exec(page)?.[1] ?? "";
}

interface Post {
  readonly body?: string;
  readonly headers?: Record<string, string>;
}

/** Sends a request as the page does. */
async function post(inspector: Inspector, { body = "{}", headers = {} }: Post): Promise<Response> {
  const all = {
    origin: new URL(HERE).origin,
    "content-type": "application/json",
    "x-holdfast-csrf": await tokenOf(inspector),
    ...headers,
  };
  return inspector(new Request(`${HERE}api/unlock`, { method: "POST", body, headers: all }));
}

async function hold(name: string, by = other): Promise<Hold> {
  const held = await by.getLock(name).lock();
  onTestFinished(() => held.unlock().catch(() => {}));
  return held;
}

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
  ])("%s with %j answers %i [B216]", async (url, headers, status) => {
    const inspector = inspect();
    for (const path of ["", "api/locks", "api/events", "app.js", "nothing"]) {
      const response = await inspector(new Request(url + path, { headers }));
      expect(response.status, path).toBe(status === 200 && path === "nothing" ? 404 : status);
      await response.body?.cancel();
    }
  });

  test("nobody can unlock, and the page does not offer it", async () => {
    const inspector = inspect();
    const held = await hold("read-only");
    expect((await post(inspector, { body: '{"name":"read-only"}' })).status).toBe(403);
    expect(held.isHeld && (await other.inspect("read-only"))).toBeTruthy();
    expect(await (await get(inspector)).text()).toContain('<meta name="holdfast-unlock" content="no">');
  });
});

describe("with authorize", () => {
  test("authorize is asked for each request with its action, and alone decides", async () => {
    const asked: string[] = [];
    const inspector = createInspector(client, {
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
  ])("%s answers nothing else", async (_, authorize, status) => {
    for (const path of ["", "api/locks", "api/events", "app.js", "nothing"]) {
      const response = await get(inspect({ authorize }), path);
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
  ])("%s /%s answers %i", async (method, path, status, allowed) => {
    const response = await inspect({ authorize: allow })(new Request(HERE + path, { method }));
    expect(response.status).toBe(status);
    expect(response.headers.get("allow")).toBe(allowed);
  });

  test("every answer is for this origin alone, and the page has nothing inline or from elsewhere", async () => {
    const inspector = inspect();
    for (const path of ["", "api/locks", "app.js", "app.css", "icon.svg", "nothing"]) {
      const { headers } = await get(inspector, path);
      const policy = headers.get("content-security-policy");
      expect(policy).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
      expect(policy).not.toMatch(/unsafe|https?:/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      if (!path.includes(".")) expect(headers.get("cache-control")).toContain("no-store");
    }
    const page = await (await get(inspector)).text();
    expect(page).not.toMatch(/<style|style=|<script(?![^>]*\bsrc=)|\bon[a-z]+=|https?:|(src|href)="\//);
  });

  test("every body is plain: who serves a Response may drop its content-encoding, as Next does [B51]", async () => {
    const inspector = inspect();
    for (const path of ["", "app.js", "app.css", "icon.svg", "api/locks"]) {
      const { headers } = await get(inspector, path, { "accept-encoding": "br, gzip" });
      expect([path, headers.get("content-encoding")]).toEqual([path, null]);
    }
  });

  test("a path is as a browser writes it [B159]", async () => {
    const inspector = inspect({ path: "/my löcks" });
    expect((await get(inspector, "/my löcks/api/locks")).status).toBe(200);
    const bare = await get(inspector, "/my%20l%C3%B6cks");
    expect([bare.status, bare.headers.get("location")]).toEqual([308, "/my%20l%C3%B6cks/"]);
  });

  test("mounted at a path: a redirect to it, and nothing beside it", async () => {
    const inspector = inspect({ path: "/admin/locks" });
    const root = await get(inspector, "/admin/locks?a=1");
    expect([root.status, root.headers.get("location")]).toEqual([308, "/admin/locks/?a=1"]);
    expect((await get(inspector, "/admin/locks/")).status).toBe(200);
    expect((await get(inspector, "/admin/locks/api/locks")).status).toBe(200);
    for (const path of ["/", "/admin/", "/api/locks", "/admin/locksmith/"])
      expect((await get(inspector, path)).status).toBe(404);
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
    expect(() => createInspector((given && client) as LockClient, options as InspectorOptions)).toThrow(
      error,
    );
  });
});

describe("api/locks", () => {
  test("tells what list tells", async () => {
    const held = await hold("listed");
    const response = await get(inspect(), "api/locks");
    const { locks } = (await response.json()) as { locks: { name: string; holders: unknown[] }[] };
    const lock = locks.find(({ name }) => name === "listed");
    expect(lock).toMatchObject({ kind: "lock", holders: [{ ownerId: held.ownerId, count: 1 }] });
  });

  test("no more than the limit, and says so", async () => {
    await hold("one");
    await hold("two");
    const response = await get(inspect({ limit: 1 }), "api/locks");
    expect(((await response.json()) as { locks: unknown[] }).locks).toHaveLength(1);
    expect(response.headers.get("x-holdfast-truncated")).toBe("true");
  });

  test("a HEAD of the events opens none [B158]", async () => {
    const inspector = inspect();
    for (let asked = 0; asked < 150; asked++) {
      const head = await inspector(new Request(`${HERE}api/events`, { method: "HEAD" }));
      expect([head.status, head.body]).toEqual([200, null]);
      expect(head.headers.get("content-type")).toMatch(/event-stream/);
    }
    const reader = new EventReader(await get(inspector, "api/events"));
    onTestFinished(() => reader.stop());
    await reader.find("locks");
  });

  test("a client that is closed answers 503 with its code", async () => {
    const closed = new LockClient(server.connect());
    await closed.close();
    const response = await createInspector(closed)(new Request(`${HERE}api/locks`));
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: "CLIENT_CLOSED" });
  });
});

describe("api/unlock", () => {
  test.each([
    ["no token", { headers: { "x-holdfast-csrf": "" } }, 403],
    ["another token", { headers: { "x-holdfast-csrf": "A".repeat(32) } }, 403],
    ["another origin", { headers: { origin: "http://evil.example" } }, 403],
    ["no origin", { headers: { origin: "" } }, 403],
    ["another site, by the browser's word", { headers: { "sec-fetch-site": "cross-site" } }, 403],
    ["no JSON", { body: "name" }, 400],
    ["no name", { body: "{}" }, 400],
    ["a name that is none", { body: '{"name":7}' }, 400],
    ["an empty name", { body: '{"name":""}' }, 400],
    ["more than a name", { body: JSON.stringify({ name: "x".repeat(100_000) }) }, 400],
    ["owners that are none", { body: '{"name":"guarded","ownerIds":[1]}' }, 400],
    ["other holders", { body: '{"name":"guarded","ownerIds":["somebody"]}' }, 409],
  ])("%s", async (_, request, status) => {
    const held = await hold("guarded");
    const response = await post(inspect({ authorize: allow }), { body: '{"name":"guarded"}', ...request });
    expect(response.status).toBe(status);
    expect((await other.inspect("guarded"))?.holders[0]?.ownerId).toBe(held.ownerId);
  });

  test("with the token and the Origin the body counts, whatever its content type", async () => {
    const headers = { "content-type": "text/plain;charset=UTF-8" };
    const response = await post(inspect({ authorize: allow }), { body: '{"name":"free"}', headers });
    expect([response.status, await response.json()]).toEqual([200, { unlocked: false }]);
  });

  test.each(["https://localhost:3000", "https://locks.example"])(
    "behind a proxy that ends TLS, or puts in a host of its own, the browser's word counts: %s [B218]",
    async (origin) => {
      const headers = { origin, "sec-fetch-site": "same-origin" };
      const response = await post(inspect({ authorize: allow }), { body: '{"name":"free"}', headers });
      expect([response.status, await response.json()]).toEqual([200, { unlocked: false }]);
    },
  );

  test.each([
    ["lock", (by: LockClient, name: string) => by.getLock(name)],
    ["fair", (by: LockClient, name: string) => by.getFairLock(name)],
    ["fenced", (by: LockClient, name: string) => by.getFencedLock(name)],
    ["read", (by: LockClient, name: string) => by.getReadWriteLock(name).readLock()],
    ["write", (by: LockClient, name: string) => by.getReadWriteLock(name).writeLock()],
  ])(
    "takes a lock of kind %s from its holder, grants it to who waits, and is told to the audit",
    async (kind, lockOf) => {
      const name = `unlocked: ${kind}`;
      const told: unknown[] = [];
      const inspector = inspect({
        authorize: allow,
        onUnlock: ({ name, lock, request }) => {
          told.push([name, lock.holders.map(({ ownerId }) => ownerId), request.method]);
        },
      });
      const held = await lockOf(other, name).lock();
      const waiting = kind === "read" ? undefined : lockOf(client, name).lock();
      if (kind === "fair")
        await until("it waits", async () => (await client.inspect(name))?.waiters.length === 1);
      const body = JSON.stringify({ name, ownerIds: [held.ownerId] });
      const response = await post(inspector, { body });
      expect([response.status, await response.json()]).toEqual([200, { unlocked: true }]);
      expect(told).toEqual([[name, [held.ownerId], "POST"]]);
      await (await waiting)?.unlock();
      await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    },
  );

  test("unlocking a writer also unlocks its read hold", async () => {
    const lock = other.getReadWriteLock("both sides");
    const owner = other.newOwner();
    await lock.writeLock().lock({ owner });
    await lock.readLock().lock({ owner });
    await post(inspect({ authorize: allow }), { body: '{"name":"both sides"}' });
    expect(await client.inspect("both sides")).toBeNull();
  });
});

test("an unlock is told to the audit although the look for what is left fails [B217]", async () => {
  const held = await other.getReadWriteLock("half").writeLock().lock();
  const told: string[] = [];
  const inspect = [() => client.inspect("half"), () => Promise.reject(new Error("planted"))];
  const failing = new Proxy(client, {
    get: (target, key) => {
      const value = key === "inspect" ? inspect.shift() : Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const inspector = createInspector(failing, {
    authorize: allow,
    onUnlock: ({ name }) => void told.push(name),
  });
  const response = await post(inspector, { body: '{"name":"half"}' });
  expect([response.status, await response.json()]).toEqual([200, { unlocked: true }]);
  expect(told).toEqual(["half"]);
  await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

describe("api/events", () => {
  async function open(inspector: Inspector): Promise<EventReader> {
    const response = await get(inspector, "api/events");
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const reader = new EventReader(response);
    onTestFinished(() => reader.stop());
    return reader;
  }

  test.each([
    ["this process", () => client],
    ["another process", () => other],
  ])("a grant and a release by %s are told, to each who looks on", async (who, by) => {
    const name = `told: ${who}`;
    const inspector = inspect({ every: 100 });
    const readers = [await open(inspector), await open(inspector)];
    for (const reader of readers) await reader.find("locks", ({ reset }) => reset);
    const held = await by().getLock(name).lock();
    const { ownerId } = held;
    for (const reader of readers) {
      await reader.find("locks", ({ changed }) =>
        changed.some((info: { name: string }) => info.name === name),
      );
      await reader.find("history", (entries) => entries.some(isEntry("granted", ownerId)));
    }
    await held.unlock();
    for (const reader of readers) {
      await reader.find("locks", ({ gone }) => gone?.includes(name));
      await reader.find("history", (entries) => entries.some(isEntry("released", ownerId)));
    }
    expect(historyOf(ownerId, readers[0])).toHaveLength(2);
  });

  test.each([
    ["a lock", () => client.getLock("nested"), () => client.getLock("nested")],
    [
      "both sides of a read-write lock",
      () => client.getReadWriteLock("nested sides").writeLock(),
      () => client.getReadWriteLock("nested sides").readLock(),
    ],
  ])(
    "the end of a nested hold is not told as that of the outer one, which was there before anybody looked on: %s [B188]",
    async (_, outerOf, innerOf) => {
      const [outer, inner] = [outerOf(), innerOf()];
      const owner = client.newOwner();
      const held = await outer.lock({ owner });
      const inspector = inspect({ every: 100 });
      const reader = await open(inspector);
      const shows = (part: string) => (data: Record<string, unknown>) =>
        JSON.stringify(data[part] ?? []).includes(`"${outer.name}"`);
      await reader.find("locks", shows("changed"));
      await (await inner.lock({ owner })).unlock();
      const later = await hold(`after the end of ${inner.name}`);
      await reader.find("history", (entries) => entries.some(isEntry("granted", later.ownerId)));
      await held.unlock();
      await reader.find("locks", shows("gone"));
      await reader.find("history", (entries) => entries.some(isEntry("released", held.ownerId)));
      expect(historyOf(held.ownerId, reader)).toEqual(["released"]);
    },
  );

  test("a nested hold that is granted while the first look is under way is no grant of its own [B188]", async () => {
    const owner = client.newOwner();
    const lock = client.getLock("nested while a look is under way");
    const held = await lock.lock({ owner });
    const history = new History(() => undefined);
    onTestFinished(history.follow(client));
    const look = async () => {
      const info = await client.inspect(lock.name);
      return info ? [info] : [];
    };
    const told = () => history.entries.map(({ what }) => what);
    history.beginLook();
    const before = await look();
    const nested = await lock.lock({ owner });
    history.endLook(before);
    await nested.unlock();
    expect(told()).not.toContain("released");
    await held.unlock();
    history.beginLook();
    history.endLook(await look());
    expect(told()).toEqual([]);
  });

  test("a page that connects later learns what was before", async () => {
    const inspector = inspect({ every: 100 });
    const first = await open(inspector);
    await first.find("locks");
    const { ownerId } = await hold("before", client);
    await first.find("history", (entries) => entries.some(isEntry("granted", ownerId)));
    const second = await open(inspector);
    await second.find("locks", ({ changed }) =>
      changed.some((info: { name: string }) => info.name === "before"),
    );
    await second.find("history", (entries) => entries.some(isEntry("granted", ownerId)));
  });

  test("each entry is told once, to a page that connects right after it too [B215]", async () => {
    const inspector = inspect({ every: 100 });
    const first = await open(inspector);
    await first.find("locks");
    const { ownerId } = await hold("once", client);
    const second = await open(inspector);
    const later = await hold("after once", client);
    for (const reader of [first, second]) {
      await reader.find("history", (entries) => entries.some(isEntry("granted", later.ownerId)));
      expect(historyOf(ownerId, reader)).toEqual(["granted"]);
    }
  });

  test("what happened right before the last page left is told once to the next", async () => {
    const inspector = inspect({ every: 100 });
    const first = await open(inspector);
    await first.find("locks");
    const { ownerId } = await hold("before leaving", client);
    await first.stop();
    const second = await open(inspector);
    await second.find("history", (entries) => entries.some(isEntry("granted", ownerId)));
    const later = await hold("after leaving", client);
    await second.find("history", (entries) => entries.some(isEntry("granted", later.ownerId)));
    expect(historyOf(ownerId, second)).toEqual(["granted"]);
  });

  test.each([
    ["this process", () => client],
    ["another process", () => other],
  ])(
    "a hold of %s that ends while nobody looks on is told as over to the next page [B214]",
    async (who, by) => {
      const inspector = inspect({ every: 100 });
      const first = await open(inspector);
      await first.find("locks");
      const name = `unseen end: ${who}`;
      const held = await hold(name, by());
      const kept = await hold(`kept: ${who}`, by());
      await first.find("history", (entries) => entries.some(isEntry("granted", held.ownerId)));
      await first.find("history", (entries) => entries.some(isEntry("granted", kept.ownerId)));
      await first.stop();
      await held.unlock();
      const second = await open(inspector);
      const entries = await second.find("history", (all) => all.some(isEntry("released", held.ownerId)));
      expect(entries.find(isEntry("released", held.ownerId))).not.toHaveProperty("held");
      expect(historyOf(kept.ownerId, second)).toEqual(["granted"]);
      await kept.unlock();
      const end = await second.find("history", (all) => all.some(isEntry("released", kept.ownerId)));
      expect(end.find(isEntry("released", kept.ownerId))).toHaveProperty("held");
      expect(historyOf(held.ownerId, second)).toEqual(["granted", "released"]);
    },
  );

  test("a hold that was nested while nobody looked on is over with its last hold", async () => {
    const owner = client.newOwner();
    const lock = client.getLock("nested unseen");
    const history = new History(() => undefined);
    const look = async () => {
      history.beginLook();
      const info = await client.inspect(lock.name);
      history.endLook(info ? [info] : []);
    };
    const told = () => history.entries.map(({ what }) => what);
    const unfollow = history.follow(client);
    await look();
    const outer = await lock.lock({ owner });
    await look();
    unfollow();
    const inner = await lock.lock({ owner });
    onTestFinished(history.follow(client));
    await look();
    await inner.unlock();
    expect(told()).toEqual(["granted"]);
    await outer.unlock();
    expect(told()).toEqual(["granted", "released"]);
  });

  test.each([
    ["this process", () => client],
    ["another process", () => other],
  ])("an unlock by an operator is told, once for each hold of %s [B189]", async (who, by) => {
    const name = `by an operator: ${who}`;
    const inspector = inspect({ every: 100, authorize: allow });
    const reader = await open(inspector);
    await reader.find("locks");
    const { ownerId } = await hold(name, by());
    await reader.find("history", (entries) => entries.some(isEntry("granted", ownerId)));
    await post(inspector, { body: JSON.stringify({ name }) });
    expect(await reader.find("unlocked")).toMatchObject({ name, ownerIds: [ownerId] });
    await reader.find("history", (entries) => entries.some(isEntry("unlocked", ownerId)));
    const later = await hold(`after ${name}`);
    await reader.find("history", (entries) => entries.some(isEntry("granted", later.ownerId)));
    expect(historyOf(ownerId, reader)).toEqual(["granted", "unlocked"]);
  });

  test("many viewers cost Redis what one does, and nobody costs nothing", async () => {
    const counter = await countCommands(server);
    onTestFinished(() => counter.stop());
    const patient = inspect({ every: 10 * PATIENCE });
    const readers = await Promise.all(Array.from({ length: 20 }, () => open(patient)));
    for (const reader of readers) await reader.find("locks");
    await counter.settle();
    expect(counter.of("SCAN")).toBe(1);

    const inspector = inspect({ every: 100 });
    const reader = await open(inspector);
    await until("it has looked again", () => reader.seen.filter(({ event }) => event === "locks").length > 2);
    await reader.stop();
    await get(inspector, "api/locks");
    await counter.reset();
    await new Promise((resolve) => setTimeout(resolve, 300));
    await counter.settle();
    expect(counter.of("SCAN")).toBe(0);
  });

  test("weeks between two looks, or none after the first, are as long as Node's timers can be", async () => {
    const warnings = recordWarnings();
    const readers = await Promise.all(
      [30 * 86_400_000, Number.POSITIVE_INFINITY].map((every) => open(inspect({ every }))),
    );
    for (const reader of readers) {
      await reader.find("locks");
      await get(inspect(), "api/locks"); // takes a turn of the event loop
      expect(reader.seen.filter(({ event }) => event === "locks")).toHaveLength(1);
    }
    expect(warnings).toEqual([]);
  });

  test("Redis that is away is trouble, and then well again", async () => {
    const own = await startRedis();
    onTestFinished(() => own.stop());
    const away = new LockClient(own.connect({ maxRetriesPerRequest: 0 }), { commandTimeout: 300 });
    onTestFinished(() => away.close({ timeout: 0 }));
    const reader = new EventReader(
      await createInspector(away, { every: 100 })(new Request(`${HERE}api/events`)),
    );
    onTestFinished(() => reader.stop());
    await reader.find("locks");
    await own.kill();
    expect(await reader.find("trouble")).toMatchObject({ code: "UNAVAILABLE" });
    await own.restart();
    const at = reader.seen.length;
    await until("it looks again", () => reader.seen.slice(at).some(({ event }) => event === "locks"));
    await away.close();
    await until("the stream ends with its client", () => reader.over);
  });
});

test("who begins to look on while Redis is away is told so [B151]", async () => {
  const own = await startRedis();
  const away = new LockClient(own.connect({ maxRetriesPerRequest: 0 }), { commandTimeout: 300 });
  onTestFinished(() => away.close({ timeout: 0 }));
  await own.stop();
  const reader = new EventReader(
    await createInspector(away, { every: 100 })(new Request(`${HERE}api/events`)),
  );
  onTestFinished(() => reader.stop());
  expect(await reader.find("trouble")).toMatchObject({ code: "UNAVAILABLE" });
});

/** What the viewer was told of the holds of this owner. */
function historyOf(ownerId: string, reader: EventReader | undefined): readonly string[] {
  const told = reader?.seen.filter(({ event }) => event === "history").flatMap(({ data }) => data) ?? [];
  return told.filter((entry) => entry.ownerId === ownerId).map(({ what }) => what);
}

function isEntry(what: string, ownerId: string): (entry: { what: string; ownerId: string }) => boolean {
  return (entry) => entry.what === what && entry.ownerId === ownerId;
}
