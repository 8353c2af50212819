/**
 * A web page that shows who holds which lock and who waits for it, and lets an operator unlock it. It is one handler of
 * fetch's Requests, for any server. It looks at Redis only while somebody looks at it.
 */
import type { LockClient } from "../index.js";
import { type Authorize, newToken, refusalOf, refusalOfOrigin } from "./inspector/access.js";
import { openEvents } from "./inspector/events.js";
import { Feed } from "./inspector/feed.js";
import { ASSETS, assetResponse, pageResponse } from "./inspector/page.js";
import { failure, json, text } from "./inspector/responses.js";
import { type Unlocked, unlock } from "./inspector/unlock.js";

export type { Action, Authorize } from "./inspector/access.js";
export {
  type NodeHandler,
  type NodeRequest,
  type NodeResponse,
  nodeHandler,
} from "./inspector/node-handler.js";
export type { Unlocked } from "./inspector/unlock.js";

/** Options of {@link createInspector}. */
export interface InspectorOptions {
  /**
   * Called for each request, with "read" or "unlock". Without it the inspector is read-only, and answers only if the
   * URL's host is loopback: `localhost`, 127.0.0.0/8 or `[::1]`.
   */
  authorize?: Authorize | undefined;
  /** Called after each unlock by an operator, for the audit. If it throws, the answer is 500. */
  onUnlock?: ((unlocked: Unlocked) => void | Promise<void>) | undefined;
  /**
   * The path where the inspector is mounted, such as `/locks`. It redirects from there to `/locks/`, and answers other
   * paths with 404. Default: wherever it is called.
   */
  path?: string | undefined;
  /**
   * Milliseconds between two looks at Redis while somebody looks on, at least 100; longer if a look takes long. Default
   * 1 000.
   */
  every?: number | undefined;
  /** How many locks are looked at, at most. Default 20 000. */
  limit?: number | undefined;
}

/** Answers a request. Never rejects: a failure is an answer, too. */
export type Inspector = (request: Request) => Promise<Response>;

interface Route {
  readonly method: "GET" | "POST";
  readonly answer: (request: Request) => Response | Promise<Response>;
}

/**
 * Serves the page at its root, `GET api/locks`, `GET api/events` (server-sent events), `POST api/unlock` `{ name }`.
 * The client stays yours to close.
 * @throws TypeError, RangeError for wrong arguments
 * @example
 * const inspector = createInspector(client, { authorize: (request) => request.headers.has("x-operator") });
 * createServer(nodeHandler(inspector)).listen(8080);
 */
export function createInspector(client: LockClient, options: InspectorOptions = {}): Inspector {
  const { authorize, onUnlock, path, every, limit } = checkOptions(client, options);
  const feed = new Feed(client, every, limit);
  const token = newToken();

  const get = (answer: Route["answer"]): Route => ({ method: "GET", answer });
  const routes: Readonly<Record<string, Route>> = {
    "": get(async (request) => {
      const canUnlock = (await refusalOf(authorize, request, "unlock")) === undefined;
      return pageResponse(token, canUnlock);
    }),
    "api/locks": get(async () => {
      const { locks, truncated } = await feed.look();
      return json(200, { locks }, { "x-holdfast-truncated": String(truncated) });
    }),
    "api/events": get((request) => openEvents(feed, request)),
    "api/unlock": { method: "POST", answer: (request) => unlock({ client, feed, onUnlock }, request) },
    ...Object.fromEntries(ASSETS.map((asset) => [asset, get(() => assetResponse(asset))])),
  };

  async function answer(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const name = routeOf(pathname, path);
    const route = name !== undefined && Object.hasOwn(routes, name) ? routes[name] : undefined;
    const action = route?.method === "POST" && request.method === "POST" ? "unlock" : "read";
    const refusal = await refusalOf(authorize, request, action);
    if (refusal) return refusal;
    if (path !== "" && pathname === path) return text(308, "", { location: `${path}/${search}` });
    if (!route) return text(404, "Not found.");
    const { method } = request;
    if (method !== route.method && !(method === "HEAD" && route.method === "GET")) {
      return text(405, "Method not allowed.", { allow: route.method === "GET" ? "GET, HEAD" : route.method });
    }
    const response =
      (action === "unlock" && refusalOfOrigin(request, token)) || (await route.answer(request));
    if (method !== "HEAD") return response;
    // Servers drop the body that nobody asked for, and need not cancel it: events would be sent to nobody for ever.
    await response.body?.cancel();
    return new Response(null, response);
  }

  return async (request) => {
    try {
      return await answer(request);
    } catch (error) {
      return failure(error);
    }
  };
}

/** The name of the route, as far as the path may have one. Without the option `path` the end of any path is the name. */
function routeOf(pathname: string, path: string): string | undefined {
  if (path !== "") return pathname.startsWith(`${path}/`) ? pathname.slice(path.length + 1) : undefined;
  return pathname.endsWith("/") ? "" : /(?:api\/)?[^/]+$/.exec(pathname)?.[0];
}

interface CheckedOptions extends Pick<InspectorOptions, "authorize" | "onUnlock"> {
  readonly path: string;
  readonly every: number;
  readonly limit: number;
}

function checkOptions(client: LockClient, options: InspectorOptions): CheckedOptions {
  if (typeof client?.list !== "function") throw new TypeError("createInspector(client) takes a LockClient");
  if (typeof options !== "object" || options === null)
    throw new TypeError("createInspector: options must be an object");
  const { authorize, onUnlock, path = "", every = 1_000, limit = 20_000, ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new TypeError(`createInspector: unknown option ${unknown}`);
  for (const [name, value] of Object.entries({ authorize, onUnlock })) {
    if (value !== undefined && typeof value !== "function") throw new TypeError(`${name} must be a function`);
  }
  if (typeof path !== "string" || !/^(\/[^?#]*)?$/.test(path))
    throw new TypeError("path must begin with /, and have no ? or # in it");
  if (!(every >= 100)) throw new RangeError("every must be at least 100");
  if (!Number.isInteger(limit) || limit < 1) throw new RangeError("limit must be an integer of at least 1");
  // As it stands in the URLs of requests.
  const { pathname } = new URL(`http://localhost${path}`);
  return { authorize, onUnlock, path: pathname.replace(/\/+$/, ""), every, limit };
}
