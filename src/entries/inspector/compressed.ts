/**
 * Compresses answers on their way to node:http, if the browser accepts that. The handler itself sends plain bodies. A
 * framework that serves fetch's Responses may drop their `content-encoding`, as Next does. Then no browser can read a
 * compressed body.
 */

/** The types that are compressed. An event stream is not: its events have to arrive as they are made. */
const COMPRESSIBLE = /^(?:text\/(?!event-stream)|application\/(?:problem\+)?json\b|image\/svg\+xml)/;

export function compressed(request: Request, response: Response): Response {
  const { body, headers: given, status } = response;
  if (given.has("content-encoding") || !COMPRESSIBLE.test(given.get("content-type") ?? "")) return response;
  const headers = new Headers(given);
  headers.append("vary", "accept-encoding");
  if (!body || !acceptsGzip(request)) return new Response(body, { status, headers });
  headers.set("content-encoding", "gzip");
  headers.delete("content-length");
  return new Response(body.pipeThrough(new CompressionStream("gzip")), { status, headers });
}

function acceptsGzip(request: Request): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(request.headers.get("accept-encoding") ?? "");
}
