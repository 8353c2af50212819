/** Makes a handler for node:http, which Express and Connect call as well, of a handler of fetch's Requests. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setRemote } from "./access.js";

/** What frameworks add to Node's request. */
interface FrameworkRequest extends IncomingMessage {
  /** The whole path, if `url` is the part below the mount point. */
  readonly originalUrl?: string;
  /** The body, if a parser has read it. */
  readonly body?: unknown;
}

/** Node's `IncomingMessage`, by structure: these types need none of Node. */
export interface NodeRequest {
  /** The method: `GET` and the like. */
  readonly method?: string | undefined;
  /** The path and the query. */
  readonly url?: string | undefined;
  /** The headers by name, in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The socket that the request came by. */
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** Node's `ServerResponse`, by structure. */
export interface NodeResponse {
  /** Sends the status and the headers. */
  writeHead(...args: never[]): unknown;
  /** Sends a part of the body. */
  write(...args: never[]): unknown;
  /** Ends the body. */
  end(...args: never[]): unknown;
}

/** Resolves when the answer is sent, or broken off. */
export type NodeHandler = (
  request: NodeRequest,
  response: NodeResponse,
  next?: (error?: unknown) => void,
) => Promise<void>;

/**
 * Serves a handler such as that of `createInspector` by node:http, Express (`app.use("/locks", …)`), Connect and
 * Fastify.
 * @example
 * express().use("/locks", nodeHandler(createInspector(client)));
 */
export function nodeHandler(handler: (request: Request) => Promise<Response>): NodeHandler {
  return async (nodeRequest, nodeResponse, next) => {
    const [incoming, outgoing] = [nodeRequest as FrameworkRequest, nodeResponse as ServerResponse];
    try {
      const slash = missingSlash(incoming);
      const request = slash === undefined && requestOf(incoming, outgoing);
      if (request) await send(await handler(request), outgoing, request);
      else if (slash !== undefined) outgoing.writeHead(308, { location: slash }).end();
      else outgoing.writeHead(400).end();
    } catch (error) {
      if (next) return next(error);
      // An answer that has begun has no other way to say that it is not whole.
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500).end();
    }
  };
}

/**
 * The address to redirect to, if `/` is missing: links of a page at `/locks` would lead out of it, so it is at
 * `/locks/`.
 */
function missingSlash({ url = "", originalUrl }: FrameworkRequest): string | undefined {
  const [path = "", query] = (originalUrl ?? url).split("?");
  if (originalUrl === undefined || !/^\/?(\?|$)/.test(url) || path.endsWith("/")) return undefined;
  const name = path.slice(path.lastIndexOf("/") + 1);
  return `./${name}/${query === undefined ? "" : `?${query}`}`;
}

function requestOf(incoming: FrameworkRequest, outgoing: ServerResponse): Request | undefined {
  const { method = "GET", headers, originalUrl, url = "/", socket } = incoming;
  const path = originalUrl ?? url;
  const scheme = "encrypted" in socket ? "https" : "http";
  const address = `${scheme}://${headers.host ?? headers[":authority"] ?? ""}${path}`;
  if (!path.startsWith("/")) return undefined;
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const init = {
    method,
    headers: headersOf(incoming),
    signal: gone.signal,
    ...(method === "GET" || method === "HEAD" ? {} : { body: bodyOf(incoming), duplex: "half" }),
  } as RequestInit;
  try {
    const request = new Request(address, init);
    setRemote(request, socket.remoteAddress);
    return request;
  } catch {
    // There is none of the method TRACE, nor with a user or no host in the Host header.
    return undefined;
  }
}

function headersOf({ headers }: IncomingMessage): Headers {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":")) continue;
    for (const each of [value ?? []].flat()) all.append(name, each);
  }
  return all;
}

function bodyOf(incoming: FrameworkRequest): NonNullable<RequestInit["body"]> {
  const { body } = incoming;
  if (body === undefined || !incoming.readableDidRead) return streamOf(incoming);
  return typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
}

/** Reads what is asked for and passes over the rest, so that the connection can serve the next request. */
function streamOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = incoming.iterator({ destroyOnReturn: false });
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return?.();
        // Node does so by itself only with a body of which nothing has been read.
        incoming.resume();
      },
    },
    { highWaterMark: 0 },
  );
}

async function send(response: Response, outgoing: ServerResponse, { method }: Request): Promise<void> {
  const { status, headers, body } = response;
  // Each cookie is a header of its own, but an object of the headers has one value for each name.
  const cookies = headers.getSetCookie();
  outgoing.writeHead(status, {
    ...Object.fromEntries(headers),
    ...(cookies.length > 0 && { "set-cookie": cookies }),
  });
  if (!body || method === "HEAD") {
    await body?.cancel();
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  // It breaks off an answer that fails on its way, so that what has come does not pass for the whole. Whoever asked may
  // have gone before there was an answer.
  await pipeline(Readable.fromWeb(body as ReadableStream), outgoing).catch(() => {});
}
